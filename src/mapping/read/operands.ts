import { isNumeric } from "../../validation/values.ts";
import type { Field, FieldType } from "../definition.ts";
import { isNoNumber } from "../storable.ts";
import { expectedLiteral } from "./defaults.ts";

/**
 * What a value that a field is compared with should have been; undefined when it fits. One that
 * does not fit would fail every request for the resource, and hold up every event of it.
 */
export function expectedOperand(field: Field, value: unknown): string | undefined {
  const expected = expectedInstead[field.type];
  return expected === undefined ? expectedLiteral(field, value) : expected(value, field);
}

const expectedText = (value: unknown): string | undefined =>
  typeof value === "string" ? undefined : "a text";

/** PostgreSQL takes braces around a UUID, and hyphens behind any four digits or none. */
const uuid = /^(?:[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}|\{[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\})$/i;

/** The types of which an operand is not what a default is. */
const expectedInstead: Partial<Record<FieldType, (value: unknown, field: Field) => string | undefined>> = {
  String: expectedText,
  // PostgreSQL reads more than ISO 8601 here, words such as `today` too.
  Date: expectedText,
  Time: expectedText,
  Interval: expectedText,
  Instant: expectedText,
  DateTime: (value) =>
    typeof value === "string" && !Number.isNaN(Date.parse(value))
      ? undefined
      : "a time such as 2026-03-28T14:30:00Z",
  Float: (value) => (typeof value === "number" ? undefined : "a number"),
  // The digits of the column limit what is stored, not what is compared.
  Decimal: (value) => (isNumeric(value) || isNoNumber(String(value)) ? undefined : "a decimal number"),
  Uuid: (value) => (typeof value === "string" && uuid.test(value) ? undefined : "a UUID"),
};
