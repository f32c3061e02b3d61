import { useState } from "react";
import type { Json, JsonRecord } from "../../api/types.ts";
import { JsonTextError, parseJson, toText, toValue, valueAt, type FormField } from "./form-fields.ts";

/** What a form holds before it is sent. */
export interface Draft {
  readonly texts: Readonly<Record<string, string>>;
  readonly isChanged: (field: FormField) => boolean;
  readonly hasChanges: boolean;
  readonly set: (field: FormField, text: string) => void;
  /** Begins again with another record. */
  readonly reset: (record: JsonRecord | null) => void;
  /** The form as one JSON text; null while its fields are shown. */
  readonly json: string | null;
  readonly setJson: (json: string | null) => void;
  /**
   * Gives the body: what has changed, or is there in a new record.
   *
   * @throws {JsonTextError} When a text is no JSON. `field` says which.
   */
  readonly body: () => JsonRecord;
}

/** Holds the texts of a form. What is left as it was is not sent. */
export function useDraft(fields: readonly FormField[], record: JsonRecord | null): Draft {
  const [start, setStart] = useState(() => textsOf(fields, record));
  const [texts, setTexts] = useState(start);
  const [json, setJsonText] = useState<string | null>(null);
  const isChanged = ({ name }: FormField): boolean => texts[name] !== start[name];
  return {
    texts,
    isChanged,
    hasChanges: json !== null || fields.some(isChanged),
    set: ({ name }, text) => setTexts((before) => ({ ...before, [name]: text })),
    reset: (next) => {
      const fresh = textsOf(fields, next);
      setStart(fresh);
      setTexts(fresh);
      setJsonText(null);
    },
    json,
    setJson: setJsonText,
    body: () => {
      if (json === null) return bodyOf(fields.filter(isChanged), texts);
      const body = parseJson(json);
      if (typeof body !== "object" || body === null || Array.isArray(body))
        throw new JsonTextError("The body must be a JSON object: { … }.");
      return body as JsonRecord;
    },
  };
}

/** Gives the values of some fields, as they are sent. */
export function bodyOf(fields: readonly FormField[], texts: Readonly<Record<string, string>>): JsonRecord {
  return Object.fromEntries(
    fields.map((field): readonly [string, Json] => [field.name, toValue(field, texts[field.name] ?? "")]),
  );
}

function textsOf(fields: readonly FormField[], record: JsonRecord | null): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields.map((field) => [field.name, record === null ? "" : toText(field, valueAt(record, field.shownAt))]),
  );
}
