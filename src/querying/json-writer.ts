import { writerOfValue } from "./json-text.ts";
import type { JsonPlace, JsonTemplate } from "./json-template.ts";
import type { Raw } from "./selection.ts";

/** Writes a record's JSON from the texts of its columns. */
type WriteRecord = (raw: Raw) => string;

export function createRecordWriter(template: JsonTemplate): WriteRecord {
  const parts: { readonly before: string; readonly write: WriteRecord }[] = [];
  let before = "";
  for (const part of template) {
    if (typeof part === "string") before += part;
    else {
      parts.push({ before, write: writerOfPlace(part) });
      before = "";
    }
  }
  const end = before;
  return (raw) => {
    let text = "";
    for (const part of parts) text += part.before + part.write(raw);
    return text + end;
  };
}

function writerOfPlace(place: JsonPlace): WriteRecord {
  if (place.kind === "value") {
    const { position } = place;
    const write = writerOfValue(place.field);
    return (raw) => write(raw[position] as string | null);
  }
  const write = createRecordWriter(place.of);
  if (place.kind === "one") {
    const { presence } = place.joined;
    return (raw) => (raw[presence] === null ? "null" : write(raw));
  }
  const { position } = place.many;
  return (raw) => `[${((raw[position] ?? []) as readonly Raw[]).map(write).join(",")}]`;
}
