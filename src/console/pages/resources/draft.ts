import { useState } from "react";
import type { JsonRecord } from "../../api/types.ts";
import { bodyOf, bodyOfJson, jsonOf, textsOf, textsOfJson, type Texts } from "./form-body.ts";
import type { FormField } from "./form-fields.ts";

/** Unsent content of a form. */
export interface Draft {
  readonly texts: Texts;
  readonly hasChanges: boolean;
  readonly set: (field: FormField, text: string) => void;
  /** Restarts with another record. */
  readonly reset: (record: JsonRecord | null) => void;
  /** The changes as one JSON text; null while the fields are shown. */
  readonly json: string | null;
  readonly setJson: (json: string) => void;
  /** Switches from the fields to the changes as JSON. */
  readonly openJson: () => void;
  /**
   * Switches from the JSON to the fields.
   *
   * @throws {JsonTextError} When the fields cannot show all of the JSON.
   */
  readonly closeJson: () => void;
  /** Switches to the fields as they were before the JSON. */
  readonly discardJson: () => void;
  /**
   * Returns the body: the changes, or the values of a new record.
   *
   * @throws {JsonTextError} When a text is no JSON.
   */
  readonly body: () => JsonRecord;
}

interface JsonDraft {
  readonly text: string;
  readonly opened: string;
}

/** Holds the texts of a form. Unchanged fields are not sent. */
export function useDraft(fields: readonly FormField[], record: JsonRecord | null): Draft {
  const [start, setStart] = useState(() => textsOf(fields, record));
  const [texts, setTexts] = useState(start);
  const [json, setJson] = useState<JsonDraft | null>(null);
  const changed = fields.filter(({ name }) => texts[name] !== start[name]);
  // An empty list has no text, but a new record may have to send one.
  const sent = fields.filter(
    (field) => changed.includes(field) || (record === null && field.kind === "list" && field.isRequired),
  );
  return {
    texts,
    hasChanges: changed.length > 0 || (json !== null && json.text !== json.opened),
    set: ({ name }, text) => setTexts((before) => ({ ...before, [name]: text })),
    reset: (next) => {
      const fresh = textsOf(fields, next);
      setStart(fresh);
      setTexts(fresh);
      setJson(null);
    },
    json: json?.text ?? null,
    // A form without fields only has the JSON, which begins as an empty body.
    setJson: (text) => setJson((before) => ({ text, opened: before?.opened ?? "{}" })),
    openJson: () => {
      const opened = jsonOf(changed, texts);
      setJson({ text: opened, opened });
    },
    closeJson: () => {
      if (json !== null && json.text !== json.opened) setTexts(textsOfJson(json.text, fields, start));
      setJson(null);
    },
    discardJson: () => setJson(null),
    body: () => (json === null ? bodyOf(sent, texts) : bodyOfJson(json.text)),
  };
}
