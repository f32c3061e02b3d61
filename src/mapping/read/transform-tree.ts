import { hint } from "../../kit/did-you-mean.ts";
import type { TransformNode } from "../definition.ts";
import { hasFields, type Draft, type DraftPart, type Drafts, type FileTransform } from "./draft.ts";
import { jsonFault } from "../storable.ts";
import { isObject } from "../../kit/is-object.ts";
import { atOnce } from "../../kit/parts.ts";

type ObjectNode = TransformNode & { readonly kind: "object" };

/**
 * Reads `transform`. Returns undefined for a file without it, which shows every field under its own
 * name.
 */
export function readTransform(draft: Draft, drafts: Drafts): ObjectNode | undefined {
  const { transform } = draft.content;
  return transform === undefined
    ? undefined
    : readObject({ draft, drafts, given: transform, path: ["transform"] });
}

function readObject({
  draft,
  drafts,
  given,
  path,
}: DraftPart<Readonly<Record<string, FileTransform>>>): ObjectNode {
  const entries = Object.entries(given).map(([name, child]) => {
    const childPath = [...path, name];
    if (name in Object.prototype) draft.report(childPath, "the name is reserved; expected another", "key");
    return [name, readNode({ draft, drafts, given: child, path: childPath })] as const;
  });
  return { kind: "object", entries };
}

function readNode({ given, ...rest }: DraftPart<FileTransform>): TransformNode {
  if (typeof given === "string") {
    const path = given.split(".");
    checkPath({ ...rest, given: path });
    return { kind: "path", path };
  }
  const keys = Object.keys(given);
  if (keys.length === 1 && keys[0] === "value") {
    const fault = atOnce(jsonFault(given["value"]));
    if (fault !== undefined)
      rest.draft.report([...rest.path, "value"], `expected a value that does not ${fault}`);
    return { kind: "value", value: given["value"] };
  }
  return readObject({ ...rest, given });
}

/** Follows the path through the resources. `include` must load every relation on it. */
function checkPath({ draft, drafts, given, path }: DraftPart<readonly string[]>): void {
  const { content, faultyKeys, code } = draft;
  // The relations that a code module loads are known only at run time.
  const isOpen = code.baseQuery !== undefined || faultyKeys.has("baseQuery");
  let included: unknown = content.baseQuery?.include;
  let here: Draft | undefined = draft;
  for (const [index, step] of given.entries()) {
    if (here === undefined || !hasFields(here)) return;
    const isLast = index === given.length - 1;
    const walked = given.slice(0, index + 1).join(".");
    if (here.fields.has(step)) {
      if (!isLast) draft.report(path, `"${walked}" is a field, and has no parts`);
      return;
    }
    if (!here.relations.has(step)) {
      const known: string[] = [...here.fields.keys(), ...toOneOf(here)];
      if (!here.mayHaveRelation(step)) {
        draft.report(path, `"${walked}" is neither a field nor a relation${hint(step, known)}`);
      }
      return;
    }
    const relation = here.relations.get(step);
    if (relation === undefined) return;
    if (relation.kind === "many") {
      const others = "expected a relation to one; a code module can show the many";
      draft.report(path, `"${walked}" leads to many records of ${relation.resource}; ${others}`);
      return;
    }
    if (isLast) {
      draft.report(
        path,
        `"${walked}" is a relation; expected one of its fields, such as ${walked}.${relation.foreignField}`,
      );
      return;
    }
    const next = isObject(included) ? included[step] : undefined;
    if (!isOpen && next !== true && !isObject(next)) {
      draft.report(path, `"${walked}" is not loaded; expected it in \`include\` of \`baseQuery\``);
      return;
    }
    included = isObject(next) ? next["include"] : undefined;
    here = drafts.get(relation.resource);
  }
}

function toOneOf(draft: Draft): string[] {
  return [...draft.relations].flatMap(([name, relation]) => (relation?.kind === "one" ? [name] : []));
}
