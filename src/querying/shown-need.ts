import type { Definition, TransformNode } from "../mapping/definition.ts";
import type { Need, RelatedNeed } from "./selection.ts";

/**
 * Returns the part of an `include` that a transform shows. Columns and relations that no answer
 * shows are not read.
 *
 * @param fields Names of fields that are always read.
 */
export function shownBy(
  transform: TransformNode | undefined,
  definition: Definition,
  included: Need,
  fields: readonly string[],
): Need {
  const paths = transform === undefined ? definition.fields.map(({ name }) => [name]) : pathsOf(transform);
  return narrowed([...paths, ...fields.map((name) => [name])], included);
}

/** Returns the paths of fields and relations that a transform names. */
export function pathsOf(node: TransformNode): readonly (readonly string[])[] {
  if (node.kind === "path") return [node.path];
  return node.kind === "object" ? node.entries.flatMap(([, child]) => pathsOf(child)) : [];
}

/** Narrows an include to the paths. A path that ends at a relation shows every field of it. */
function narrowed(paths: readonly (readonly string[])[], included: Need): Need {
  const fields = new Set<string>();
  const within = new Map<string, (readonly string[])[]>();
  for (const [name = "", ...rest] of paths) {
    if (included.related.has(name)) within.set(name, [...(within.get(name) ?? []), rest]);
    else if (rest.length === 0) fields.add(name);
  }
  const related = new Map<string, RelatedNeed>();
  for (const [name, rests] of within) {
    const there = included.related.get(name) as RelatedNeed;
    const isWhole = rests.some((rest) => rest.length === 0);
    const need = narrowed(rests, there.need);
    related.set(name, { ...there, need: isWhole ? { ...need, fields: undefined } : need });
  }
  return { fields, related };
}
