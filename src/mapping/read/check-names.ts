import type { Draft } from "./draft.ts";
import { isReserved, maxNameBytes } from "./fields.ts";

/** Words that Prisma keeps to itself: its types, and what a generated client cannot be called in JavaScript. */
const reservedModels = new Set(
  (
    "Prisma PrismaClient String Boolean Int BigInt Float Decimal DateTime Json Bytes async await break case catch class const continue " +
    "debugger default delete do else enum export extends false finally for function if implements import in instanceof " +
    "interface let new null package private protected public return super switch this throw true try type typeof using var void while with yield"
  ).split(" "),
);

/** Checks the names of resources, models and tables, each in itself and against the other files. */
export function checkNames(drafts: readonly Draft[]): void {
  for (const draft of drafts) {
    const { model, table } = draft.content;
    if (model !== undefined && (reservedModels.has(model) || isReserved(delegateOf(model)))) {
      draft.report(["model"], `"${model}" is a reserved word; expected another name, such as ${model}Record`);
    }
    if (table !== undefined && Buffer.byteLength(table) > maxNameBytes) {
      draft.report(["table"], `expected at most ${maxNameBytes} bytes`);
    }
  }
  // Two files of one name have one table too by default, which is not worth a second fault.
  const distinct = checkUnique(drafts, "name", ({ content }) => content.name);
  // Order and order are the same in the client.
  checkUnique(drafts, "model", ({ content }) => content.model && delegateOf(content.model));
  checkUnique(
    distinct,
    "table",
    ({ content, faultyKeys }) => content.table ?? (faultyKeys.has("table") ? undefined : content.name),
  );
}

function delegateOf(model: string): string {
  return `${model.charAt(0).toLowerCase()}${model.slice(1)}`;
}

/** Gives back the drafts without those that repeat a name. */
function checkUnique(
  drafts: readonly Draft[],
  key: "name" | "model" | "table",
  nameOf: (draft: Draft) => string | undefined,
): readonly Draft[] {
  const taken = new Map<string, string>();
  return drafts.filter((draft) => {
    const name = nameOf(draft);
    const other = name === undefined ? undefined : taken.get(name);
    if (other !== undefined) {
      // A table that is not given is named like the resource.
      const path = draft.content[key] === undefined ? ["name"] : [key];
      draft.report(path, `expected a ${key} of its own; ${other} has the same`);
      return false;
    }
    if (name !== undefined) taken.set(name, draft.source.file);
    return true;
  });
}
