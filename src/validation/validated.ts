import { countOf, isContainer, type Path } from "./body-paths.ts";
import type { KeyNode } from "./compile.ts";

/** Returns the part of a body that has rules, in the order of the rules. */
export function validatedOf(
  keys: KeyNode,
  body: Readonly<Record<string, unknown>>,
  isExcluded: (path: Path) => boolean,
): Record<string, unknown> {
  const found = [...keys.children].flatMap(([key, node]): [string, unknown][] => {
    const value = Object.hasOwn(body, key) ? keep(node, body[key], [key], isExcluded) : undefined;
    return value === undefined ? [] : [[key, value]];
  });
  return Object.fromEntries(found);
}

/** Returns undefined when no part has rules. */
function keep(node: KeyNode, value: unknown, path: Path, isExcluded: (path: Path) => boolean): unknown {
  if (isExcluded(path)) return undefined;
  if (node.children.size === 0 || !isContainer(value)) return node.hasRules ? value : undefined;
  if (node.hasRules && (!node.isArray || countOf(value) === 0)) return value;

  const items = Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
    const child = node.children.get(key) ?? node.children.get("*");
    const kept = child === undefined ? undefined : keep(child, item, [...path, key], isExcluded);
    return kept === undefined ? [] : [[key, kept]];
  });
  if (items.length === 0) return undefined;
  return Array.isArray(value) ? items.map(([, item]) => item) : Object.fromEntries(items);
}
