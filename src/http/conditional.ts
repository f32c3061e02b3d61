import { hash } from "node:crypto";
import { AppError } from "../kit/errors.ts";
import type { ApiContext } from "./state.ts";

/** The value of `If-Match` or `If-None-Match`: every record (`*`), or entity tags as written. */
export type EntityTags = "*" | readonly string[];

/**
 * Pattern of an entity tag (RFC 9110, 8.8.3) with the commas and blanks before it; lists allow
 * empty items (5.6.1.2).
 */
const item = /[ \t,]*((?:W\/)?"[!#-~\u0080-\u00ff]*")[ \t]*(?=,|$)/y;

/**
 * Returns the strong entity tag of an answer's JSON. It is a hash of the sent bytes, so it reveals
 * nothing that the answer does not show.
 */
export function entityTagOf(json: string | Uint8Array): string {
  return `"${hash("sha256", json, "base64url")}"`;
}

/** Parses a list of entity tags. Returns undefined for any other text. */
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

/**
 * Returns whether `If-None-Match` names the record, so that the answer is a 304. Compares weakly.
 */
export function isKnown(ctx: ApiContext, tag: string): boolean {
  const tags = parseEntityTags(ctx.get("If-None-Match"));
  if (tags === undefined || tags === "*") return tags === "*";
  return tags.some((known) => known === tag || known === `W/${tag}`);
}

/** Bytes that many answers share. */
export interface TaggedBytes {
  readonly bytes: Buffer;
  readonly tag: string;
}

/** Returns bytes with their entity tag. */
export function tagged(bytes: Buffer): TaggedBytes {
  return { bytes, tag: entityTagOf(bytes) };
}

/**
 * Sends bytes, or a 304 to a client that has them.
 *
 * @param caching Value of `Cache-Control`.
 */
export function sendTagged(
  ctx: ApiContext,
  { bytes, tag }: TaggedBytes,
  { type, caching }: { readonly type: string; readonly caching: string },
): void {
  ctx.set("ETag", tag);
  ctx.set("Cache-Control", caching);
  ctx.type = type;
  ctx.body = bytes;
  if (isKnown(ctx, tag)) ctx.status = 304;
}

export function isConditional(ctx: ApiContext): boolean {
  return ctx.req.headers["if-match"] !== undefined || ctx.get("If-None-Match") !== "";
}

/**
 * Refuses a write when the record does not meet its conditions.
 *
 * A malformed `If-Match` is refused, because the write would go ahead without the condition that
 * its sender relies on. A malformed `If-None-Match` holds for every record.
 *
 * @param tag Tag of the current record; undefined for a webhook, user or token, which have none.
 *   Only `If-Match: *` holds for these.
 * @throws AppError `record.changed`; `request.malformed` for an `If-Match` that is no list of
 *   entity tags.
 */
export function checkConditions(ctx: ApiContext, tag: string | undefined): void {
  const text = ctx.req.headers["if-match"];
  if (text !== undefined) {
    const tags = parseEntityTags(text);
    if (tags === undefined)
      throw new AppError(
        "request.malformed",
        'The If-Match header must be * or entity tags in double quotes, as ETag gives them: If-Match: "…".',
      );
    if (!hasEntityTag(tags, tag ?? "")) throw tag === undefined ? hasNoTag() : recordChanged();
  }
  if (isKnown(ctx, tag ?? ""))
    throw new AppError(
      "record.changed",
      "The record is one that If-None-Match excludes. Nothing was changed.",
    );
}

function hasNoTag(): AppError {
  return new AppError(
    "record.changed",
    "Only records of resources have an ETag. Nothing was changed: send the request without If-Match, or with *.",
  );
}

/** Creates the 412 error of a record that `If-Match` does not name. */
export function recordChanged(): AppError {
  return new AppError(
    "record.changed",
    "The record was changed since it was read. Nothing was written: read it again, and send the change with its new ETag.",
  );
}
