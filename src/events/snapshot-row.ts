import { Decimal } from "../kit/prisma-values.ts";
import type { Definition, Field, FieldType, Row } from "../mapping/definition.ts";
import { instantText } from "../mapping/temporal.ts";
import { dateOrText } from "../querying/values.ts";

/**
 * Returns a captured row as Prisma would have read it. A field that was mapped after the event is
 * null, or an empty list. A field that is no longer mapped is left out.
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
  const decode = (item: unknown): unknown => {
    // A column of arrays accepts arrays of any depth.
    if (isList && Array.isArray(item)) return item.map(decode);
    return item === null ? null : decoders[type](item);
  };
  if (!isList) return decode(value);
  return Array.isArray(value) ? value.map(decode) : [];
}

const asIs = (value: unknown): unknown => value;

const decoders: Readonly<Record<FieldType, (value: unknown) => unknown>> = {
  Int: asIs,
  BigInt: (value) => BigInt(String(value)),
  // PostgreSQL writes NaN and the infinities as strings, because JSON has no such numbers.
  Float: Number,
  Decimal: (value) => new Decimal(String(value)),
  String: asIs,
  Boolean: asIs,
  DateTime: (value) => dateOf(String(value)),
  Instant: (value) => instantText(String(value)),
  Date: asIs,
  Time: asIs,
  Interval: asIs,
  Json: (value) => JSON.parse(String(value)) as unknown,
  Bytes: (value) => new Uint8Array(Buffer.from(String(value), "base64")),
  Uuid: asIs,
  Enum: asIs,
};

/** Reads a `timestamp`, which has no offset, as UTC, as Prisma does. A `date` is midnight UTC. */
function dateOf(text: string): Date | string {
  return dateOrText(new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text), text);
}
