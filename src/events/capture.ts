import { createHash } from "node:crypto";
import { Decimal } from "@prisma/client/runtime/client";
import { fittingName, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Field, FieldType, Row } from "../resources/definition.ts";
import type { Trigger } from "./event.ts";

/** What writes one resource's changes into `svc.events`, in the writer's own transaction. */
export interface Capture {
  /** Changes when the statements do. */
  readonly hash: string;
  /** Statements that replace whatever was installed under the resource's name; they only remove it when it has no triggers. */
  readonly install: readonly string[];
}

const operations: Readonly<Record<Trigger, string>> = {
  on_create: "INSERT",
  on_update: "UPDATE",
  on_delete: "DELETE",
};

/** PostgreSQL passes at most 100 arguments to a function; a pair takes two. */
const maxPairs = 50;

/** Name of the trigger that captures a resource's rows. */
export function captureTriggerName(resource: string): string {
  return fittingName(`svc_capture_${resource}`);
}

/**
 * The statements that install a resource's capture.
 *
 * The function runs with the rights of the role that migrates, so that writers of the table need none on `svc`, and under a
 * search path that no writer can bend. It sends no NOTIFY: that takes a lock over all commits of the database.
 * A change of a row that leaves every mapped column as it was makes no event, nor does a session with
 * `session_replication_role = replica` (a restore, a logical replica).
 */
export function captureOf(definition: Definition): Capture {
  const install = [...removeCapture(definition), ...createStatements(definition)];
  return { hash: createHash("sha256").update(install.join(";\n")).digest("hex"), install };
}

/** The statements that remove a resource's capture from whichever table it is on; no fault when there is none, or no table. */
export function removeCapture({ name }: { readonly name: string }): readonly string[] {
  // The cascade reaches its triggers only: nothing else can depend on a trigger function.
  return [`DROP FUNCTION IF EXISTS ${functionName(name)} CASCADE`];
}

function functionName(resource: string): string {
  return `svc.${quoteName(fittingName(`capture_${resource}`))}`;
}

function createStatements(definition: Definition): readonly string[] {
  if (definition.triggers.length === 0) return [];
  const name = functionName(definition.name);
  const table = quoteTable(definition.table);
  const rowTrigger = quoteName(captureTriggerName(definition.name));
  const truncateTrigger = quoteName(fittingName(`svc_capture_${definition.name}`, "_truncate"));
  const events = definition.triggers.map((trigger) => operations[trigger]).join(" OR ");
  return [
    `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER\n` +
      `SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET extra_float_digits = 1\n` +
      `AS ${dollarQuoted(functionBody(definition))}`,
    `REVOKE ALL ON FUNCTION ${name}() FROM PUBLIC`,
    `CREATE TRIGGER ${rowTrigger} AFTER ${events} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
    ...(definition.triggers.includes("on_delete")
      ? [
          `CREATE TRIGGER ${truncateTrigger} BEFORE TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`,
        ]
      : []),
  ];
}

function functionBody(definition: Definition): string {
  const [after, before] = [snapshotOf(definition, "NEW"), snapshotOf(definition, "OLD")];
  const branches: Readonly<Record<Trigger, string>> = {
    on_create: `WHEN 'INSERT' THEN
    ${insertOf({ definition, trigger: "on_create", row: "NEW", snapshot: after })};`,
    on_update: `WHEN 'UPDATE' THEN
    svc_after := ${after};
    IF svc_after IS DISTINCT FROM ${before} THEN
      ${insertOf({ definition, trigger: "on_update", row: "NEW", snapshot: "svc_after" })};
    END IF;`,
    on_delete: `WHEN 'DELETE' THEN
    ${insertOf({ definition, trigger: "on_delete", row: "OLD", snapshot: before })};
  WHEN 'TRUNCATE' THEN
    ${insertOf({ definition, trigger: "on_delete", row: "svc_row", snapshot: snapshotOf(definition, "svc_row") })}
    FROM ${quoteTable(definition.table)} AS svc_row;`,
  };
  return `
DECLARE
  svc_after jsonb;
BEGIN
  CASE TG_OP
  ${definition.triggers.map((trigger) => branches[trigger]).join("\n  ")}
  END CASE;
  RETURN NULL;
END
`;
}

function insertOf({
  definition,
  trigger,
  row,
  snapshot,
}: {
  readonly definition: Definition;
  readonly trigger: Trigger;
  readonly row: string;
  readonly snapshot: string;
}): string {
  const owner = definition.fields.find(({ name }) => name === definition.ownerColumn);
  const asText = (field: Field): string => `${row}.${quoteName(field.column)}::text`;
  const values = [
    quoteText(definition.name),
    quoteText(trigger),
    asText(definition.key),
    owner === undefined ? "NULL" : asText(owner),
    snapshot,
  ];
  return `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot) SELECT ${values.join(", ")}`;
}

function snapshotOf(definition: Definition, row: string): string {
  const pairs = definition.fields.map(
    (field) => `${quoteText(field.name)}, ${encoded(field, `${row}.${quoteName(field.column)}`)}`,
  );
  const chunks: string[] = [];
  for (let start = 0; start < pairs.length; start += maxPairs)
    chunks.push(`jsonb_build_object(${pairs.slice(start, start + maxPairs).join(", ")})`);
  return `(${chunks.join(" || ")})`;
}

/**
 * How a column travels in the snapshot; `decoders` lead back. Numbers of arbitrary size go as text, since those of JSON lose digits
 * in JavaScript; so do JSON documents, since `json` may hold what `jsonb` refuses (`\u0000`), and that would fail the writer.
 */
const encodings: Readonly<Record<FieldType, "json" | "text" | "base64">> = {
  Int: "json",
  BigInt: "text",
  Float: "json",
  Decimal: "text",
  String: "json",
  Boolean: "json",
  DateTime: "json",
  Json: "text",
  Bytes: "base64",
  Uuid: "json",
  Enum: "json",
};

function encoded({ type, isList }: Field, column: string): string {
  const encoding = encodings[type];
  if (encoding === "json") return column;
  if (encoding === "text") return `${column}::${isList ? "text[]" : "text"}`;
  return isList ? base64ListOf(column) : base64Of(column);
}

/** `encode` breaks its lines after 76 characters; `Buffer` does not mind. */
function base64Of(bytes: string): string {
  return `encode(${bytes}, 'base64')`;
}

function base64ListOf(list: string): string {
  const items = `SELECT ${base64Of("item")} FROM unnest(${list}) WITH ORDINALITY AS items (item, place) ORDER BY place`;
  return `CASE WHEN ${list} IS NOT NULL THEN ARRAY(${items}) END`;
}

function dollarQuoted(body: string): string {
  let tag = "$svc$";
  for (let n = 1; body.includes(tag); n++) tag = `$svc${n}$`;
  return `${tag}${body}${tag}`;
}

/**
 * A captured row as Prisma would have read it. A field that was mapped after the event is null (an empty list for a list), and
 * one that is not mapped any more is left out.
 */
export function rowOfSnapshot(
  definition: Pick<Definition, "fields">,
  snapshot: Readonly<Record<string, unknown>>,
): Row {
  return Object.fromEntries(
    definition.fields.map((field) => [field.name, decodedField(field, snapshot[field.name] ?? null)]),
  );
}

function decodedField({ type, isList }: Field, value: unknown): unknown {
  const decode = (item: unknown): unknown => (item === null ? null : decoders[type](item));
  if (!isList) return decode(value);
  return Array.isArray(value) ? value.map(decode) : [];
}

const asIs = (value: unknown): unknown => value;

const decoders: Readonly<Record<FieldType, (value: unknown) => unknown>> = {
  Int: asIs,
  BigInt: (value) => BigInt(String(value)),
  // JSON has no NaN and no infinities: PostgreSQL writes them as strings.
  Float: Number,
  Decimal: (value) => new Decimal(String(value)),
  String: asIs,
  Boolean: asIs,
  DateTime: (value) => dateOf(String(value)),
  Json: (value) => JSON.parse(String(value)) as unknown,
  Bytes: (value) => new Uint8Array(Buffer.from(String(value), "base64")),
  Uuid: asIs,
  Enum: asIs,
};

/** A `timestamp` has no offset and is UTC, as Prisma has it; a `date` is midnight UTC, which it is to `Date` as well. */
function dateOf(text: string): Date {
  return new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text);
}
