import type { CatalogRelation } from "./catalog.ts";

/** Patterns for names of tables from an operator: `orders`, `sales.orders`, `tmp_*`. */
export interface Patterns {
  readonly matches: (relation: Pick<CatalogRelation, "schema" | "name">) => boolean;
  /** Returns the patterns that match none of the relations. */
  readonly unused: (relations: readonly Pick<CatalogRelation, "schema" | "name">[]) => readonly string[];
}

/** Parses patterns for names of tables, in which `*` stands for any characters. */
export function createPatterns(texts: readonly string[]): Patterns {
  const all = texts.map((text) => {
    const source = text.split("*").map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&"));
    return { text, pattern: new RegExp(`^${source.join(".*")}$`, "su") };
  });
  return {
    matches: (relation) => all.some(({ pattern }) => fits(pattern, relation)),
    unused: (relations) =>
      all.filter(({ pattern }) => !relations.some((one) => fits(pattern, one))).map(({ text }) => text),
  };
}

function fits(pattern: RegExp, { schema, name }: Pick<CatalogRelation, "schema" | "name">): boolean {
  return pattern.test(name) || pattern.test(`${schema}.${name}`);
}
