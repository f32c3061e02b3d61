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

/** Returns the part of a value that has rules; undefined without one. */
function keep(node: KeyNode, value: unknown, path: Path, isExcluded: (path: Path) => boolean): unknown {
  if (isExcluded(path)) return undefined;
  if (node.children.size === 0 || !isContainer(value)) return node.hasRules ? value : undefined;
  const isWhole = node.hasRules && (!node.isArray || countOf(value) === 0);
  if (isWhole) return withoutExcluded(node, value, path, isExcluded);
  return mapped(node, value, (child, item, key) =>
    child === undefined ? undefined : keep(child, item, [...path, key], isExcluded),
  );
}

/** Returns all of a value but its excluded parts. */
function withoutExcluded(
  node: KeyNode,
  value: unknown,
  path: Path,
  isExcluded: (path: Path) => boolean,
): unknown {
  if (node.children.size === 0 || !isContainer(value) || countOf(value) === 0) return value;
  return mapped(node, value, (child, item, key) => {
    if (child === undefined) return item;
    const own = [...path, key];
    return isExcluded(own) ? undefined : withoutExcluded(child, item, own, isExcluded);
  });
}

/** Returns the items that `act` keeps; undefined without any. */
function mapped(
  { children }: KeyNode,
  value: object,
  act: (child: KeyNode | undefined, item: unknown, key: string) => unknown,
): unknown {
  const items = Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
    const kept = act(children.get(key) ?? children.get("*"), item, key);
    return kept === undefined ? [] : [[key, kept]];
  });
  if (items.length === 0) return undefined;
  return Array.isArray(value) ? items.map(([, item]) => item) : Object.fromEntries(items);
}
