import { triggers } from "../../mapping/definition.ts";
import { listOf, objectOf } from "../json-schema.ts";
import { text } from "../value-schemas.ts";
import { sectionOf, type Operation } from "../operation.ts";
import { readConditions } from "../shared-parameters.ts";

/**
 * Returns the operations that describe the service.
 *
 * @param isPublic Whether this document needs no token.
 */
export function serviceOperations(isPublic: boolean): readonly Operation[] {
  return sectionOf({ tag: "Service", scope: "none" }, [
    {
      method: "get",
      path: "/resources",
      id: "svc.resources.list",
      summary: "Lists the resources",
      scope: "any",
      answers: {
        200: {
          description: "All of them.",
          schema: objectOf({
            data: listOf(
              objectOf({ name: text, model: text, triggers: listOf({ type: "string", enum: triggers }) }),
            ),
          }),
        },
      },
    },
    {
      method: "get",
      path: "/openapi.json",
      id: "svc.openapi",
      summary: "Shows this document, which is the same for every token",
      scope: isPublic ? "none" : "any",
      parameters: readConditions,
      answers: {
        200: {
          description: "An OpenAPI 3.1 document.",
          schema: { type: "object", required: ["openapi"], properties: { openapi: text } },
          headers: ["ETag"],
        },
        304: { description: "If-None-Match names it.", headers: ["ETag"] },
      },
    },
    {
      method: "get",
      path: "/docs",
      id: "svc.docs",
      summary: "Shows a page over this document, for people",
      parameters: readConditions,
      answers: {
        200: { description: "The page.", schema: text, mediaType: "text/html", headers: ["ETag"] },
        304: { description: "If-None-Match names it.", headers: ["ETag"] },
      },
    },
  ]);
}
