import type { Json, JsonRecord } from "../../api/types.ts";
import {
  JsonTextError,
  parseJson,
  toText,
  toValue,
  valueAt,
  type FieldKind,
  type FormField,
} from "./form-fields.ts";

/** Texts of the fields of a form, by name. */
export type Texts = Readonly<Record<string, string>>;

/** Returns the texts of the fields of a record; null for a new record. */
export function textsOf(fields: readonly FormField[], record: JsonRecord | null): Texts {
  return Object.fromEntries(
    fields.map((field) => [field.name, record === null ? "" : toText(field, valueAt(record, field.shownAt))]),
  );
}

/**
 * Returns the values of some fields in the form of the request body.
 *
 * @throws {JsonTextError} With the name of the field that does not contain JSON.
 */
export function bodyOf(fields: readonly FormField[], texts: Texts): JsonRecord {
  return Object.fromEntries(
    fields.map((field): readonly [string, Json] => {
      try {
        return [field.name, toValue(field, texts[field.name] ?? "")];
      } catch (error) {
        if (error instanceof JsonTextError) throw new JsonTextError(`${field.name}: ${error.message}`);
        throw error;
      }
    }),
  );
}

/**
 * Adds the fields that the rules require in each update, with the record's values. A required field
 * that the record does not show is left out, and the server reports it.
 */
export function withRequired(body: JsonRecord, fields: readonly FormField[], record: JsonRecord): JsonRecord {
  const required = fields.filter(({ name, isRequired }) => isRequired && !(name in body));
  const shown = required.flatMap(({ name, shownAt }): readonly (readonly [string, Json])[] => {
    const value = valueAt(record, shownAt);
    return value === undefined || value === null ? [] : [[name, value]];
  });
  return { ...body, ...Object.fromEntries(shown) };
}

/** Returns some fields as one JSON text. A field's content that is not JSON becomes a string. */
export function jsonOf(fields: readonly FormField[], texts: Texts): string {
  const entries = fields.map((field) => {
    try {
      return Object.entries(bodyOf([field], texts))[0] ?? [field.name, null];
    } catch (error) {
      if (error instanceof JsonTextError) return [field.name, texts[field.name] ?? ""];
      throw error;
    }
  });
  return JSON.stringify(Object.fromEntries(entries), null, 2);
}

/** @throws {JsonTextError} When the text is not a JSON object. */
export function bodyOfJson(json: string): JsonRecord {
  const body = parseJson(json);
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new JsonTextError("The body must be a JSON object: { … }.");
  return body as JsonRecord;
}

/**
 * Returns the texts of the fields for a JSON body. Fields that are not in the body keep their text.
 *
 * @param start Texts of the form when it was opened.
 * @throws {JsonTextError} When the fields cannot show all of the body, so that a part would be
 *   lost.
 */
export function textsOfJson(json: string, fields: readonly FormField[], start: Texts): Texts {
  const texts = Object.entries(bodyOfJson(json)).map(([name, value]) => {
    const field = fields.find((one) => one.name === name);
    if (field === undefined) throw new JsonTextError(`The form has no field ${name}.`);
    const text = toText(field, value);
    // An empty field that was empty before is not sent.
    const isKept = (text !== "" || start[name] !== "") && isRead(field, text, value);
    if (!isKept) throw new JsonTextError(`The field ${name} cannot show its value.`);
    return [name, text];
  });
  return { ...start, ...Object.fromEntries(texts) };
}

/** Forms of text that the controls of the browser show. */
const shownTexts: Partial<Readonly<Record<FieldKind, RegExp>>> = {
  moment: /^\d{4,5}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/,
  date: /^\d{4,5}-\d\d-\d\d$/,
};

/**
 * Returns whether the browser's control of a kind shows a text. Others are invisible in it: the
 * `infinity` and the years BC that an existing table may have.
 */
export function isVisible(kind: FieldKind, text: string): boolean {
  return text === "" || shownTexts[kind]?.test(text) !== false;
}

/** Returns whether a field with `text` shows the text and sends `value`. */
function isRead(field: FormField, text: string, value: Json): boolean {
  if (!isVisible(field.kind, text)) return false;
  if (text !== "" && field.kind === "choice" && !field.choices.includes(text)) return false;
  try {
    return JSON.stringify(toValue(field, text)) === JSON.stringify(value);
  } catch {
    return false;
  }
}
