import { parseDateText } from "../../validation/dates.ts";
import { isNumeric } from "../../validation/values.ts";
import type { Field, FieldType } from "../definition.ts";
import { isNoNumber } from "../storable.ts";
import { isDateText, isTimeText } from "../temporal.ts";
import { expectedLiteral, expectedText, unlessText } from "./defaults.ts";

/**
 * Returns the expected form of a value that a field is compared with; undefined when it fits. A
 * value that does not fit would fail every request for the resource, and delay all its events.
 */
export function expectedOperand(field: Field, value: unknown): string | undefined {
  const expected = expectedInstead[field.type];
  return expected === undefined ? expectedLiteral(field, value) : expected(value, field);
}

const dayWords = /^(?:today|tomorrow|yesterday|now|epoch|[+-]?infinity)$/i;
const timeWords = /^(?:now|allballs)$/i;

// PostgreSQL reads more than ISO 8601 here: also `28 March 2026` and words such as `today`. So only
// texts that it certainly refuses are faults: other words, and invalid texts that resemble ISO
// 8601.
const isDay = (given: string): boolean => {
  const text = given.trim();
  const [day] = /^\d{4}-\d\d-\d\d(?!\d)/.exec(text) ?? [];
  return dayWords.test(text) || (/\d/.test(text) && (day === undefined || isDateText(day)));
};
const isTime = (given: string): boolean => {
  const text = given.trim();
  return timeWords.test(text) || (/\d/.test(text) && (!/^\d\d:\d\d$/.test(text) || isTimeText(text)));
};

/**
 * Pattern of UUIDs. PostgreSQL accepts braces around a UUID, and hyphens after any four digits or
 * none.
 */
const uuid = /^(?:[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}|\{[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\})$/i;

/** Expected forms of operands, for types whose defaults have another form. */
const expectedInstead: Partial<Record<FieldType, (value: unknown, field: Field) => string | undefined>> = {
  String: expectedText,
  Date: unlessText("a day such as 2026-03-28", isDay),
  Time: unlessText("a time of day such as 14:30:00", isTime),
  Interval: expectedText,
  Instant: unlessText("a time such as 2026-03-28T14:30:00Z", isDay),
  DateTime: unlessText("a time such as 2026-03-28T14:30:00Z", (text) => parseDateText(text) !== undefined),
  Float: (value) => (typeof value === "number" ? undefined : "a number"),
  // The digits of the column limit stored values, not compared ones.
  Decimal: (value) => (isNumeric(value) || isNoNumber(String(value)) ? undefined : "a decimal number"),
  Uuid: unlessText("a UUID", (text) => uuid.test(text)),
};
