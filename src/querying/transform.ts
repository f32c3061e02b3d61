import { formatDateTime } from "../kit/date-time.ts";
import { Decimal } from "../kit/prisma-values.ts";
import { callCode } from "../mapping/code-module.ts";
import type { Definition, Definitions, Field, FieldType, Row, TransformNode } from "../mapping/definition.ts";
import { isTemporal } from "../mapping/temporal.ts";
import { isContainer } from "../validation/body-paths.ts";

type Read = (row: Row) => unknown;
type Render = (value: unknown) => unknown;

/** Limit of the depth of a code module's results; deeper ones are treated as circular. */
const maxDepth = 64;

/**
 * Creates the transform of a resource's records, for answers and webhooks. The result can be
 * written as JSON: dates, decimals, big integers and bytes are texts (docs/api.md, "Values").
 *
 * @returns A function that throws only when the code module does; the error names the resource.
 */
export function createTransform(definition: Definition, definitions: Definitions): (row: Row) => unknown {
  const { transform } = definition.code;
  if (transform !== undefined) {
    const run = <T>(call: () => T): T => callCode(definition, "transform", call);
    const withTexts = temporalTexts(definition, definitions);
    return (row) => {
      const result = run(() => transform(withTexts(row)));
      return run(() => objectOf(toJsonSafe(result, 0)));
    };
  }
  if (definition.transform === undefined) return readerOfFields(definition);
  return compileNode(definition.transform, definition, definitions);
}

/**
 * Refuses a result that is not a record. Otherwise, a forgotten `return` would send `data: null` to
 * every receiver.
 */
function objectOf(shown: unknown): object {
  if (isContainer(shown) && !Array.isArray(shown)) return shown;
  throw new Error("the result is not an object");
}

/**
 * Prepares rows for code, which gets days and times as texts. The Prisma client returns them as
 * dates.
 */
function temporalTexts(definition: Definition, definitions: Definitions): (row: Row) => Row {
  const all = [definition, ...definitions.values()];
  if (!all.some(({ fields }) => fields.some(isTemporal))) return (row) => row;
  const withTexts = (row: Row, { fields, relations }: Definition): Row => {
    const own = fields.filter((field) => isTemporal(field) && field.name in row);
    const texts = own.map((field) => [field.name, rendererOf(field)(row[field.name])] as const);
    const related = relations.flatMap(({ name, resource }) => {
      const [value, target] = [row[name], definitions.get(resource)];
      if (!isContainer(value) || target === undefined) return [];
      const many = Array.isArray(value) ? (value as readonly Row[]) : undefined;
      return [[name, many?.map((one) => withTexts(one, target)) ?? withTexts(value as Row, target)] as const];
    });
    return { ...row, ...Object.fromEntries([...texts, ...related]) };
  };
  return (row) => withTexts(row, definition);
}

function compileNode(node: TransformNode, definition: Definition, definitions: Definitions): Read {
  if (node.kind === "value") return () => node.value;
  if (node.kind === "path") return compilePath(node.path, definition, definitions);
  return readerOfObject(
    node.entries.map(([key, child]) => [key, compileNode(child, definition, definitions)]),
  );
}

function readerOfObject(entries: readonly (readonly [string, Read])[]): Read {
  return (row) => Object.fromEntries(entries.map(([key, read]) => [key, read(row)]));
}

/** Returns the reader of every field under its own name. */
function readerOfFields({ fields }: Definition): Read {
  return readerOfObject(fields.map((field) => [field.name, readerOfField(field)]));
}

function readerOfField(field: Field): Read {
  const render = rendererOf(field);
  return (row) => render(row[field.name]);
}

/** Returns the function that converts a field's value, in Prisma's types, to its form in JSON. */
export function rendererOf(field: Field): Render {
  const renderOne = renderers[field.type];
  const render: Render = (value) => (value === null || value === undefined ? null : renderOne(value, field));
  const renderItem: Render = (item) => (Array.isArray(item) ? item.map(renderItem) : render(item));
  return field.isList ? (value) => (Array.isArray(value) ? value.map(renderItem) : null) : render;
}

/**
 * Compiles a path. A step through a missing relation gives null, a step through a relation to many
 * gives a list.
 */
function compilePath(path: readonly string[], definition: Definition, definitions: Definitions): Read {
  const [name = "", ...rest] = path;
  const field = definition.fields.find((candidate) => candidate.name === name);
  if (field !== undefined && rest.length === 0) return readerOfField(field);

  const relation = definition.relations.find((candidate) => candidate.name === name);
  const target = relation === undefined ? undefined : definitions.get(relation.resource);
  if (target === undefined) {
    throw new Error(
      `transform of the resource ${definition.name}: there is no field or relation ${path.join(".")}`,
    );
  }
  const read = rest.length === 0 ? readerOfFields(target) : compilePath(rest, target, definitions);
  return (row) => {
    const related = row[name];
    if (Array.isArray(related)) return (related as readonly Row[]).map(read);
    return isContainer(related) ? read(related as Row) : null;
  };
}

const renderers: Readonly<Record<FieldType, (value: unknown, field: Field) => unknown>> = {
  Int: (value) => value,
  BigInt: (value) => (typeof value === "bigint" ? bigIntOf(value) : value),
  Float: finiteOf,
  Decimal: (value, { scale }) => (isDecimalLike(value) ? decimalText(new Decimal(value), scale) : null),
  String: (value) => value,
  Boolean: (value) => value,
  DateTime: (value) => (value instanceof Date ? dateOf(value) : value),
  Instant: (value) => (value instanceof Date ? dateOf(value) : value),
  Date: dayOf,
  Time: timeOf,
  Interval: (value) => value,
  // The value was JSON when it was stored.
  Json: (value) => value,
  Bytes: (value) => (value instanceof Uint8Array ? base64Of(value) : value),
  Uuid: (value) => value,
  Enum: (value) => value,
};

const bigIntOf = (value: bigint): number | string =>
  Number.isSafeInteger(Number(value)) ? Number(value) : String(value);

/** Returns null for NaN and infinities, which JSON does not have. */
function finiteOf(value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}

/**
 * Returns a decimal in the form of answers, with at least the digits of the scale. An existing
 * column may contain more digits, and none is rounded away.
 */
export function decimalText(value: Decimal, scale = 0): string {
  return value.decimalPlaces() > scale ? value.toFixed() : value.toFixed(scale);
}

const isDecimalLike = (value: unknown): value is Decimal | string | number =>
  Decimal.isDecimal(value) || typeof value === "string" || typeof value === "number";

/**
 * Returns a date as text. The Prisma client returns PostgreSQL's `infinity` as an invalid date; all
 * other values have their text.
 */
const dateOf = (value: Date): string | null => (Number.isNaN(value.getTime()) ? null : formatDateTime(value));

/** Returns a day as text. The Prisma client returns midnight UTC. */
function dayOf(value: unknown): unknown {
  if (!(value instanceof Date)) return value;
  return Number.isNaN(value.getTime()) ? null : value.toISOString().slice(0, 10);
}

/** Returns a time as text. The Prisma client returns a time on the first day of 1970. */
function timeOf(value: unknown): unknown {
  return value instanceof Date
    ? value
        .toISOString()
        .slice(11, -1)
        .replace(/\.?0+$/, "")
    : value;
}

const base64Of = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

const hasToJson = (value: object): value is { toJSON(): unknown } =>
  "toJSON" in value && typeof value.toJSON === "function";

/**
 * Makes a result of code safe for JSON by the kinds of its values, because it has no fields.
 * Returns undefined for a value without a form in JSON.
 */
function toJsonSafe(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return bigIntOf(value);
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (!isContainer(value)) return finiteOf(value);
  if (value instanceof Date) return dateOf(value);
  if (value instanceof Uint8Array) return base64Of(value);
  if (Decimal.isDecimal(value)) return value.toFixed();
  if (depth === maxDepth)
    throw new Error(`the result is nested more than ${maxDepth} levels deep, or circular`);
  if (Array.isArray(value)) return value.map((item) => toJsonSafe(item, depth + 1) ?? null);
  if (hasToJson(value)) return toJsonSafe(value.toJSON(), depth + 1);
  const entries = Object.entries(value).map(([key, item]) => [key, toJsonSafe(item, depth + 1)] as const);
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}
