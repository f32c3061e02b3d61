import { getOrSet } from "../kit/group-by.ts";
import { countOf, isContainer, type Path } from "./body-paths.ts";
import type { KeyNode } from "./compile.ts";

/** Excluded paths as a tree. An excluded key is left out with all that is within it. */
export interface Exclusions {
  readonly children: Map<string, Exclusions>;
  isExcluded: boolean;
}

/** Returns a tree without exclusions. */
export const noExclusions = (): Exclusions => ({ children: new Map(), isExcluded: false });

/** Adds a path to the tree. */
export function exclude(root: Exclusions, path: Path): void {
  let node = root;
  for (const step of path) node = getOrSet(node.children, step, noExclusions);
  node.isExcluded = true;
}

/** Returns whether a path is excluded itself, or within an excluded path. */
export function isExcluded(root: Exclusions, path: Path): boolean {
  let node: Exclusions | undefined = root;
  for (const step of path) {
    node = node.children.get(step);
    if (node === undefined || node.isExcluded) break;
  }
  return node?.isExcluded === true;
}

/** Returns the part of a body that has rules, in the order of the rules. */
export function validatedOf(
  keys: KeyNode,
  body: Readonly<Record<string, unknown>>,
  excluded: Exclusions,
): Record<string, unknown> {
  const found = [...keys.children].flatMap(([key, node]): [string, unknown][] => {
    const value = Object.hasOwn(body, key) ? keep(node, body[key], excluded.children.get(key)) : undefined;
    return value === undefined ? [] : [[key, value]];
  });
  return Object.fromEntries(found);
}

/** Returns the part of a value that has rules; undefined without one. */
function keep(node: KeyNode, value: unknown, excluded: Exclusions | undefined): unknown {
  if (excluded?.isExcluded === true) return undefined;
  if (node.children.size === 0 || !isContainer(value)) return node.hasRules ? value : undefined;
  const isWhole = node.hasRules && (!node.isArray || countOf(value) === 0);
  if (isWhole) return withoutExcluded(node, value, excluded);
  return mapped(node, value, (child, item, key) =>
    child === undefined ? undefined : keep(child, item, excluded?.children.get(key)),
  );
}

/** Returns all of a value but its excluded parts. */
function withoutExcluded(node: KeyNode, value: unknown, excluded: Exclusions | undefined): unknown {
  if (excluded === undefined || !isContainer(value) || countOf(value) === 0) return value;
  return mapped(node, value, (child, item, key) => {
    if (child === undefined) return item;
    const within = excluded.children.get(key);
    return within?.isExcluded === true ? undefined : withoutExcluded(child, item, within);
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
