import type { Json, JsonRecord } from "../../api/types.ts";
import { fromLocalTime, toLocalTime } from "../../parts/local-time.ts";
import type { Schema } from "./schema.ts";

export type FieldKind =
  | "line"
  | "text"
  | "number"
  | "choice"
  | "boolean"
  | "moment"
  | "date"
  | "list"
  | "relation"
  | "json";

/** A field of a form, from the schema of the body. */
export interface FormField {
  readonly name: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  /** Whether it may be sent as a number. */
  readonly isNumeric: boolean;
  readonly choices: readonly string[];
  /** Rules that a schema cannot express, such as unique. */
  readonly hint: string | undefined;
  /** The resource that a relation points at. */
  readonly resource: string | undefined;
  /** Path of the value in a record's JSON. */
  readonly shownAt: string;
}

const lineLength = 255;

export function formFields({ properties = {}, required = [] }: Schema): readonly FormField[] {
  return Object.entries(properties).map(([name, schema]) => {
    const ways = alternativesOf(schema);
    const hint = hintOf(schema);
    const kind = schema["x-resource"] === undefined ? kindOf(ways, hint) : "relation";
    return {
      name,
      kind,
      isRequired: required.includes(name),
      isNullable: alternativesOf(schema, true).some((way) => typesOf(way).includes("null")),
      isNumeric: isNumeric(ways),
      choices:
        kind === "choice"
          ? (ways.find((way) => way.enum)?.enum ?? []).filter((one) => one !== null).map(String)
          : [],
      hint,
      resource: schema["x-resource"],
      shownAt: schema["x-shown"] ?? name,
    };
  });
}

function typesOf({ type }: Schema): readonly string[] {
  return type === undefined ? [] : typeof type === "string" ? [type] : type;
}

/** Returns the alternative schemas of a value, without null unless requested. */
function alternativesOf(schema: Schema, withNull = false): readonly Schema[] {
  const ways =
    schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap((way) => alternativesOf(way, withNull));
  return withNull ? ways : ways.filter(({ type }) => type !== "null");
}

function hasType(ways: readonly Schema[], type: string): boolean {
  return ways.some((way) => typesOf(way).includes(type));
}

function isNumeric(ways: readonly Schema[]): boolean {
  return hasType(ways, "integer") || hasType(ways, "number");
}

function kindOf(ways: readonly Schema[], hint: string | undefined): FieldKind {
  const has = (type: string): boolean => hasType(ways, type);
  const choices = ways.find((way) => way.enum !== undefined)?.enum;
  // `in:0,1` lists the same numbers as `boolean`, but does not accept true.
  if (has("boolean") || choices?.some((choice) => typeof choice === "boolean") === true) return "boolean";
  if (choices !== undefined) return "choice";
  if (has("array")) return ways.every(isPlainList) ? "list" : "json";
  if (isNumeric(ways)) return "number";
  if (!has("string")) return "json";
  const formats: Readonly<Record<string, FieldKind>> = { "date-time": "moment", date: "date" };
  const format = ways.find((way) => way.format !== undefined && way.format in formats)?.format;
  if (format !== undefined) return formats[format] ?? "line";
  // A date control cannot write the format of `date_format`.
  if (hint?.includes("date_format") === true) return "line";
  const longest = Math.max(...ways.map(({ maxLength }) => maxLength ?? Number.POSITIVE_INFINITY));
  return longest <= lineLength || ways.some((way) => way.format !== undefined) ? "line" : "text";
}

function isPlainList(way: Schema): boolean {
  return (
    way.items !== undefined && alternativesOf(way.items).every((item) => typesOf(item).includes("string"))
  );
}

function hintOf({ description }: Schema): string | undefined {
  const rules = /^Rules: (.*)\.$/.exec(description ?? "")?.[1];
  if (rules === undefined) return description;
  const said = rules.split(", ").filter((rule) => rule !== "exists");
  return said.length === 0 ? undefined : `Rules: ${said.join(", ")}`;
}

/** Returns the value at a path of a record; undefined when there is none. */
export function valueAt(record: Json | undefined, path: string): Json | undefined {
  let value: Json | undefined = record;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = (value as JsonRecord)[key];
  }
  return value;
}

export function toText({ kind }: FormField, value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "list" && Array.isArray(value)) return listText(value);
  if (kind === "moment" && typeof value === "string") return toLocalTime(value) ?? value;
  if (kind === "boolean" && (value === 1 || value === 0)) return String(value === 1);
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** Returns a list with one item per line, or as JSON when these lines would give another list. */
function listText(list: readonly Json[]): string {
  const lines = list.map(String).join("\n");
  return JSON.stringify(readList(lines)) === JSON.stringify(list) ? lines : JSON.stringify(list, null, 2);
}

function readList(text: string): Json {
  try {
    const list = JSON.parse(text) as Json;
    if (Array.isArray(list)) return list;
  } catch {
    // The text is not JSON but lines.
  }
  return text.split(/[\r\n]+/).filter((line) => line !== "");
}

/** Thrown for a text that is not valid JSON. */
export class JsonTextError extends Error {}

/**
 * Converts the text of a field to the value to send.
 *
 * @throws {JsonTextError} For a JSON field whose text is not JSON.
 */
export function toValue(field: FormField, text: string): Json {
  const { kind, isNullable } = field;
  if (text === "" && kind !== "list") return isNullable || (kind !== "line" && kind !== "text") ? null : "";
  switch (kind) {
    case "json":
      return parseJson(text);
    case "list":
      return readList(text);
    case "boolean":
      return text === "true" || text === "1";
    case "number":
    case "relation":
    case "choice":
      return field.isNumeric ? toNumber(text) : text;
    case "moment":
      return fromLocalTime(text);
    case "line":
    case "text":
    case "date":
      return text;
  }
}

/**
 * Converts a text to a number. Returns the text when a JSON number would have another value: many
 * digits, or "NaN".
 */
function toNumber(text: string): number | string {
  const number = Number(text);
  return Number.isFinite(number) && String(number) === text ? number : text;
}

/** @throws {JsonTextError} With the browser's description of the fault and its place. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new JsonTextError(`This is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
