import { listOf, nullable, objectOf, type JsonSchema } from "./json-schema.ts";
import { whole } from "./value-schemas.ts";

const url: JsonSchema = { type: ["string", "null"], format: "uri" };
const cursor: JsonSchema = { type: ["string", "null"] };

/** Returns the schema of a page by number (docs/lists.md, "Pages"). */
export function pageSchema(record: JsonSchema): JsonSchema {
  return objectOf(
    {
      data: listOf(record),
      current_page: whole,
      last_page: nullable(whole),
      per_page: whole,
      total: nullable(whole),
      total_is_estimate: { type: "boolean", const: true },
      next_page_url: url,
      prev_page_url: url,
    },
    { optional: ["total_is_estimate"] },
  );
}

export function cursorPageSchema(record: JsonSchema): JsonSchema {
  return objectOf({
    data: listOf(record),
    per_page: whole,
    next_cursor: cursor,
    prev_cursor: cursor,
    next_page_url: url,
    prev_page_url: url,
  });
}

/** Returns the schema of either page: the parameter `cursor` decides. */
export function listSchema(record: JsonSchema): JsonSchema {
  return { anyOf: [pageSchema(record), cursorPageSchema(record)] };
}
