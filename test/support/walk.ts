import type { Definition, Definitions, Field } from "../../src/mapping/definition.ts";
import { rulesOf } from "../../src/resources/rules.ts";
import { parseRules } from "../../src/validation/syntax.ts";
import type { TestUser } from "./service.ts";

/** Result of a walk through every resource. */
export interface Walk {
  /** The first record of each resource that accepted one. */
  readonly created: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** Answers that a good resource does not give. */
  readonly faults: readonly string[];
}

const natives: Readonly<Record<string, string>> = {
  inet: "10.0.0.1",
  cidr: "10.0.0.0/8",
  macaddr: "08:00:2b:01:02:03",
  money: "1.50",
  timetz: "10:00+00",
  oid: "7",
  point: "(1,2)",
};

/**
 * Creates a record of every resource with only the fields that its rules require, then lists and
 * shows it.
 *
 * @param bodies Further fields by resource, for values that the rules do not determine.
 */
export async function walkResources(
  user: TestUser,
  definitions: Definitions,
  bodies: Readonly<Record<string, object>> = {},
): Promise<Walk> {
  const created = new Map<string, Readonly<Record<string, unknown>>>();
  const faults: string[] = [];
  for (const definition of inOrder(definitions)) {
    const { name, supportsCreate, isView } = definition;
    const path = `/resources/${name}`;
    const say = (what: string, status: number, body: unknown): void =>
      void faults.push(`${name}: ${what} ${status} ${JSON.stringify(body)}`);
    if (supportsCreate && !isView) {
      const answer = await user.request("POST", path, {
        ...bodyOf(definition, created),
        ...bodies[name],
      });
      if (answer.status === 201) created.set(name, answer.body);
      else say("POST", answer.status, answer.body);
    }
    const list = await user.request("GET", `${path}?per_page=5`);
    if (list.status !== 200) say("list", list.status, list.body);
    const [record] = list.body?.data ?? [];
    if (supportsCreate && !isView && record === undefined && created.has(name))
      say("no record in", 200, list.body);
    if (record === undefined) continue;
    // A view may show a group of rows without a value.
    if (definition.keys.some((key) => record[key.name] === null)) continue;
    const id = definition.keys.map((key) => encodeURIComponent(String(record[key.name]))).join(",");
    const shown = await user.request("GET", `${path}/${id}`);
    if (shown.status !== 200) say(`GET ${id}`, shown.status, shown.body);
    for (const include of definition.includes) {
      const included = await user.request("GET", `${path}?include=${include}`);
      if (included.status !== 200) say(`include ${include}`, included.status, included.body);
    }
    if (definition.searchableColumns.length > 0) {
      const found = await user.request("GET", `${path}?search=x`);
      if (found.status !== 200) say("search", found.status, found.body);
    }
  }
  return { created, faults };
}

/** Returns resources that others refer to first; views last, when they have records. */
function inOrder(definitions: Definitions): readonly Definition[] {
  const done = new Set<string>();
  const sorted: Definition[] = [];
  const add = (definition: Definition): void => {
    if (done.has(definition.name)) return;
    done.add(definition.name);
    for (const { references } of definition.fields) {
      const target = references === undefined ? undefined : definitions.get(references.resource);
      if (target !== undefined) add(target);
    }
    sorted.push(definition);
  };
  for (const definition of definitions.values()) add(definition);
  return sorted.toSorted((a, b) => Number(a.isView) - Number(b.isView));
}

function bodyOf(
  definition: Definition,
  created: ReadonlyMap<string, Readonly<Record<string, unknown>>>,
): Readonly<Record<string, unknown>> {
  const rules = rulesOf(definition, "createRules");
  return Object.fromEntries(
    definition.fields.flatMap((field): [string, unknown][] => {
      const own = parseRules(rules[field.name] ?? []);
      if (!own.some(({ name }) => name === "required" || name === "present")) return [];
      const { references } = field;
      if (references !== undefined)
        return [[field.name, created.get(references.resource)?.[references.field]]];
      const values = own.find(({ name }) => name === "in")?.args;
      if (values !== undefined) return [[field.name, values[0]]];
      const least = own.find(({ name }) => name === "min" || name === "gt" || name === "between")?.args[0];
      return [[field.name, field.isList ? [] : sampleOf(field, Number(least ?? 0))]];
    }),
  );
}

function sampleOf({ type, length = 40, values = [], native }: Field, least: number): unknown {
  if (native !== undefined && native !== "citext") return natives[native] ?? "1";
  switch (type) {
    case "Int":
      return Math.max(least + 1, 1);
    case "BigInt":
      return String(Math.max(least + 1, 1));
    case "Float":
    case "Decimal":
      return Math.max(least + 1, 1);
    case "String":
      return "x@y.example".slice(0, length).padEnd(least, "x");
    case "Boolean":
      return true;
    case "DateTime":
    case "Instant":
      return "2026-03-28T14:30:00Z";
    case "Date":
      return "2026-03-28";
    case "Time":
      return "14:30:00";
    case "Interval":
      return "P1D";
    case "Json":
      return { a: 1 };
    case "Bytes":
      return "AAEC";
    case "Uuid":
      return "018f3c5e-7b1a-7000-8000-0123456789ab";
    case "Enum":
      return values[0];
  }
}
