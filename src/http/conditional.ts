import { hash } from "node:crypto";
import { AppError } from "../kit/errors.ts";
import type { ApiContext } from "./state.ts";

/** The value of `If-Match` or `If-None-Match`: every record (`*`), or entity tags as written. */
export type EntityTags = "*" | readonly string[];

/** RFC 9110, 8.8.3, with the commas and blanks before it; the list allows empty items (5.6.1.2). */
const item = /[ \t,]*((?:W\/)?"[!#-~\u0080-\u00ff]*")[ \t]*(?=,|$)/y;

/**
 * Returns the strong entity tag of an answer's JSON. It is a hash of the bytes that are sent. It
 * therefore reveals nothing about a record that the answer does not show.
 */
export function entityTagOf(json: string | Uint8Array): string {
  return `"${hash("sha256", json, "base64url")}"`;
}

/** Reads a list of entity tags. Returns undefined for what is none. */
export function parseEntityTags(text: string): EntityTags | undefined {
  if (text.trim() === "*") return "*";
  const tags: string[] = [];
  let end = 0;
  for (;;) {
    item.lastIndex = end;
    const [whole, tag] = item.exec(text) ?? [];
    if (whole === undefined || tag === undefined) break;
    tags.push(tag);
    end += whole.length;
  }
  return tags.length > 0 && /^[ \t,]*$/.test(text.slice(end)) ? tags : undefined;
}

/** Compares strongly (RFC 9110, 8.8.3.2): a weak tag matches nothing. */
export function hasEntityTag(tags: EntityTags, tag: string): boolean {
  return tags === "*" || tags.includes(tag);
}

/** Returns whether `If-None-Match` names the record, which is then a 304. Compares weakly. */
export function isKnown(ctx: ApiContext, tag: string): boolean {
  const text = ctx.get("If-None-Match");
  const tags = text === "" ? undefined : parseEntityTags(text);
  if (tags === undefined || tags === "*") return tags === "*";
  return tags.some((known) => known === tag || known === `W/${tag}`);
}

/** Returns whether a write has conditions. */
export function isConditional(ctx: ApiContext): boolean {
  return ctx.req.headers["if-match"] !== undefined || ctx.get("If-None-Match") !== "";
}

/**
 * Refuses a write when the record does not meet its conditions.
 *
 * An `If-Match` that cannot be read is refused: the write would go ahead without the condition that
 * its sender relies on. An `If-None-Match` like that holds for every record.
 *
 * @param tag Of the record as it is.
 * @throws AppError `record.changed`; `request.malformed` for an `If-Match` that is no list of
 *   entity tags.
 */
export function checkConditions(ctx: ApiContext, tag: string): void {
  const text = ctx.req.headers["if-match"];
  if (text !== undefined) {
    const tags = parseEntityTags(text);
    if (tags === undefined)
      throw new AppError(
        "request.malformed",
        'The If-Match header must be * or entity tags in double quotes, as ETag gives them: If-Match: "…".',
      );
    if (!hasEntityTag(tags, tag)) throw recordChanged();
  }
  if (isKnown(ctx, tag))
    throw new AppError(
      "record.changed",
      "The record is one that If-None-Match excludes. Nothing was changed.",
    );
}

/** Makes the 412 of a record that is not the one that `If-Match` names. */
export function recordChanged(): AppError {
  return new AppError(
    "record.changed",
    "The record was changed since it was read. Nothing was written: read it again, and send the change with its new ETag.",
  );
}
