import type {
  Definition,
  Definitions,
  Field,
  Relation,
  TransformNode,
} from "../../src/mapping/definition.ts";
import { leadsToMany } from "../../src/mapping/shown.ts";
import { pick, upTo, type Random } from "../support/random.ts";
import { operandsOf } from "./differing-resources.ts";

type Args = Record<string, unknown>;

/** A query in Prisma's form that the query compiler supports. */
export interface GeneratedQuery {
  readonly where: Args;
  readonly orderBy: readonly Args[];
  readonly include: Args | undefined;
  readonly skip: number;
  readonly take: number;
}

/** Generates queries on the records of a set of definitions. */
export interface Generator {
  readonly query: (definition: Definition) => GeneratedQuery;
  readonly transform: (definition: Definition) => Definition["transform"];
}

export function createGenerator(definitions: Definitions, random: Random): Generator {
  const chance = (likelihood: number): boolean => random() < likelihood;
  const targetOf = (relation: Relation): Definition => definitions.get(relation.resource) as Definition;
  const isMany = (relation: Relation): boolean => leadsToMany(relation, targetOf(relation));

  function whereOf(definition: Definition, depth: number): Args {
    const where: Args = {};
    const parts = pick(random, [0, 1, 1, 1, 2, 3]);
    for (let part = 0; part < parts; part += 1) {
      const kind = random();
      if (kind < 0.6 || depth === 0) {
        const field = pick(random, definition.fields);
        const filter = filterOf(definition, field);
        if (filter !== undefined) where[field.name] = filter;
      } else if (kind < 0.8 && definition.relations.length > 0) {
        const relation = pick(random, definition.relations);
        where[relation.name] = relatedFilter(relation, depth - 1);
      } else {
        const word = pick(random, ["AND", "OR", "NOT"]);
        const several = Array.from({ length: 1 + upTo(random, 2) }, () => someWhere(definition, depth - 1));
        where[word] = word === "OR" || chance(0.7) ? several : someWhere(definition, depth - 1);
      }
    }
    return where;
  }

  /** Prisma treats empty groups as all or as none, by their depth. */
  function someWhere(definition: Definition, depth: number): Args {
    for (;;) {
      const where = whereOf(definition, depth);
      if (Object.keys(where).length > 0) return where;
    }
  }

  function relatedFilter(relation: Relation, depth: number): unknown {
    const target = targetOf(relation);
    const inner = (): Args => whereOf(target, depth);
    if (isMany(relation))
      return Object.fromEntries(
        Array.from({ length: pick(random, [1, 1, 2]) }, () => [
          pick(random, ["some", "every", "none"]),
          inner(),
        ]),
      );
    const isRequired = relation.kind === "one" && !mayBeMissing(relation);
    const choice = random();
    if (choice < 0.2 && !isRequired) return null;
    if (choice < 0.5) return someWhere(target, depth);
    const word = pick(random, ["is", "isNot"]);
    return { [word]: choice < 0.65 && !isRequired ? null : inner() };
  }

  /** Whether the reference of a relation may be missing. */
  function mayBeMissing({ localField, relationName }: Relation): boolean {
    const owner = [...definitions.values()].find(({ relations }) =>
      relations.some((one) => one.kind === "one" && one.relationName === relationName),
    );
    return owner?.fields.find(({ name }) => name === localField)?.isOptional ?? true;
  }

  function filterOf(definition: Definition, field: Field): unknown {
    const operands = operandsOf(definition.name, field);
    if (operands.length === 0 || field.type === "Json") return undefined;
    const one = (): unknown => pick(random, operands);
    const several = (): readonly unknown[] => Array.from({ length: upTo(random, 3) }, one);
    if (field.isList)
      return pick<() => unknown>(random, [
        () => ({ equals: several() }),
        () => ({ has: one() }),
        () => ({ hasEvery: several() }),
        () => ({ hasSome: several() }),
        () => ({ isEmpty: chance(0.5) }),
      ])();
    const simple = (): Args => scalarFilter(field, one, several);
    if (chance(0.15)) return one();
    if (chance(0.1) && field.isOptional) return null;
    if (chance(0.15)) return { not: chance(0.5) ? simple() : field.isOptional && chance(0.3) ? null : one() };
    return chance(0.2) ? { ...simple(), ...simple() } : (textFilter(field, one) ?? simple());
  }

  function scalarFilter(field: Field, one: () => unknown, several: () => readonly unknown[]): Args {
    const words = ["equals", "in", "notIn"];
    if (field.type !== "Boolean" && field.type !== "Bytes") words.push("lt", "lte", "gt", "gte");
    const word = pick(random, words);
    if (word === "equals" && field.isOptional && chance(0.2)) return { equals: null };
    // A Boolean has no list of values in Prisma.
    if (field.type === "Boolean") return { equals: one() };
    return { [word]: word === "in" || word === "notIn" ? several() : one() };
  }

  function textFilter(field: Field, one: () => unknown): Args | undefined {
    // For a native type, answers show another text than the one that Prisma searches.
    if (field.type !== "String" || field.native !== undefined || chance(0.4)) return undefined;
    const whole = Array.from(String(one()));
    const start = upTo(random, whole.length);
    const part = whole.slice(start, start + upTo(random, 3)).join("");
    const pattern = chance(0.3) ? part.replaceAll(/[\\%_]/g, String.raw`\$&`) : part.replace(/\\+$/, "");
    // Prisma compares the padding of char(n) only without case.
    const mode = field.length === undefined ? pick(random, [undefined, "default", "insensitive"]) : undefined;
    const word = pick(random, ["contains", "startsWith", "endsWith"]);
    return { [word]: pattern, ...(mode === undefined ? {} : { mode }) };
  }

  function orderOf(definition: Definition, depth = 1): Args[] {
    const steps = Array.from({ length: upTo(random, 2) }, () => orderStep(definition, depth));
    const keys = definition.keys.map(({ name }) => name);
    const others = steps.filter((step) => !keys.some((key) => key in step));
    return [...others, ...keys.map((key) => ({ [key]: pick(random, ["asc", "desc"]) }))];
  }

  function orderStep(definition: Definition, depth: number): Args {
    const ones = definition.relations.filter((relation) => !isMany(relation));
    if (depth > 0 && ones.length > 0 && chance(0.3)) {
      const relation = pick(random, ones);
      return { [relation.name]: orderStep(targetOf(relation), depth - 1) };
    }
    const fields = definition.fields.filter(({ isList, type }) => !isList && type !== "Json");
    const field = pick(random, fields);
    const sort = pick(random, ["asc", "desc"]);
    if (!field.isOptional || chance(0.4)) return { [field.name]: sort };
    return { [field.name]: { sort, nulls: pick(random, ["first", "last"]) } };
  }

  function includeOf(definition: Definition, depth: number): Args | undefined {
    const parts = definition.relations.filter(() => chance(0.45));
    const args = parts.map((relation): [string, unknown] => {
      const include = depth === 0 ? undefined : includeOf(targetOf(relation), depth - 1);
      const nested = include === undefined ? {} : { include };
      if (!isMany(relation)) return [relation.name, include === undefined ? true : nested];
      return [
        relation.name,
        {
          ...nested,
          orderBy: orderOf(targetOf(relation)),
          ...(chance(0.3) ? { where: whereOf(targetOf(relation), 1) } : {}),
          ...(chance(0.3) ? { take: upTo(random, 3) } : {}),
          ...(chance(0.2) ? { skip: upTo(random, 2) } : {}),
        },
      ];
    });
    return args.length === 0 ? undefined : Object.fromEntries(args);
  }

  function pathOf(definition: Definition, depth: number): readonly string[] {
    if (depth > 0 && definition.relations.length > 0 && chance(0.5)) {
      const relation = pick(random, definition.relations);
      return chance(0.3) ? [relation.name] : [relation.name, ...pathOf(targetOf(relation), depth - 1)];
    }
    return [pick(random, definition.fields).name];
  }

  function nodeOf(definition: Definition, depth: number): TransformNode {
    const kind = random();
    if (kind < 0.1) return { kind: "value", value: pick(random, [1, "x", null, { a: [1] }, true]) };
    if (kind < 0.25 && depth > 0) return objectOf(definition, depth - 1);
    return { kind: "path", path: pathOf(definition, 2) };
  }

  function objectOf(definition: Definition, depth: number): TransformNode & { readonly kind: "object" } {
    const names = ["a", "b", "10", "2", "__proto__", 'quo"te', "c", "id", "constructor"];
    return {
      kind: "object",
      entries: Array.from({ length: 1 + upTo(random, 6) }, () => [
        pick(random, names),
        nodeOf(definition, depth),
      ]),
    };
  }

  return {
    query: (definition) => ({
      where: whereOf(definition, 2),
      orderBy: orderOf(definition, 2),
      include: chance(0.6) ? includeOf(definition, 1) : undefined,
      skip: pick(random, [0, 0, 0, 1, 5, 100]),
      take: pick(random, [1, 3, 15, 100]),
    }),
    transform: (definition) => (chance(0.3) ? undefined : objectOf(definition, 2)),
  };
}
