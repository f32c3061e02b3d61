import type { Config } from "../config/load.ts";
import { version } from "../kit/version.ts";
import type { Definitions } from "../mapping/definition.ts";
import { deliveryRequests } from "./delivery-requests.ts";
import { eventOperations, eventSchemas } from "./endpoints/events.ts";
import { operationOperations, operationSchemas } from "./endpoints/operations.ts";
import { replayOperations, replaySchemas } from "./endpoints/replays.ts";
import { deliveryOperations, deliverySchemas } from "./endpoints/deliveries.ts";
import { bodySchemas, resourceOperations } from "./endpoints/resources.ts";
import { serviceOperations } from "./endpoints/service.ts";
import { userOperations, userSchemas } from "./endpoints/users.ts";
import { webhookOperations, webhookSchemas } from "./endpoints/webhooks.ts";
import { faultSchemas } from "./faults.ts";
import { keyPaths } from "./hints.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Operation } from "./operation.ts";
import { recordSchemas } from "./record-schemas.ts";
import { renderPaths, scheme } from "./render.ts";
import { answerHeaders, rateLimitHeaders, sharedHeaders } from "./shared-parameters.ts";

/** The part of the settings that the document depends on. */
export interface DocumentOptions {
  readonly definitions: Definitions;
  readonly config: {
    readonly http: Pick<Config["http"], "routePrefix" | "publicUrl" | "maxPerPage" | "rateLimit" | "openApi">;
    readonly auth: { readonly jwt: object | undefined };
  };
}

/**
 * Describes everything that is served as OpenAPI 3.1: docs/openapi.md. Pure. The document depends
 * on the configuration alone, and is the same for every token. It therefore leaves out the private
 * parts of mapping files: base queries, filters of `access`, defaults, tables and columns.
 */
export function createDocument({ definitions, config }: DocumentOptions): JsonSchema {
  const { routePrefix, publicUrl = "" } = config.http;
  const url = `${publicUrl}${routePrefix}`;
  const schemas = schemasOf(definitions);
  const { paths, responses } = renderPaths(operationsOf({ definitions, config }), {
    schemas,
    takesJwts: config.auth.jwt !== undefined,
    hasRateLimit: config.http.rateLimit !== undefined,
  });
  return {
    openapi: "3.1.0",
    info: { title: "svc", version, license: { name: "Apache-2.0", identifier: "Apache-2.0" }, description },
    servers: [{ url: url === "" ? "/" : url }],
    security: [{ [scheme]: [] }],
    tags: tagsOf(definitions),
    paths,
    webhooks: deliveryRequests(definitions),
    components: {
      securitySchemes: {
        [scheme]: {
          type: "http",
          scheme: "bearer",
          description: `A token of the service, which begins with svc_${config.auth.jwt === undefined ? "" : ", or a JWT"}. Each operation names the scope that the token needs.`,
        },
      },
      parameters: sharedHeaders,
      headers:
        config.http.rateLimit === undefined ? answerHeaders : { ...answerHeaders, ...rateLimitHeaders },
      schemas,
      responses,
    },
  };
}

function schemasOf(definitions: Definitions): Readonly<Record<string, JsonSchema>> {
  const ofResources = [...definitions.values()].map((definition) => ({
    ...recordSchemas(definition, definitions),
    ...bodySchemas(definition, definitions),
  }));
  return Object.assign(
    {},
    ...ofResources,
    webhookSchemas(definitions),
    deliverySchemas(),
    replaySchemas(),
    eventSchemas(),
    operationSchemas(),
    userSchemas,
    faultSchemas,
  ) as Readonly<Record<string, JsonSchema>>;
}

function operationsOf({ definitions, config }: DocumentOptions): readonly Operation[] {
  const { maxPerPage, openApi } = config.http;
  return [
    ...[...definitions.values()].flatMap((definition) =>
      resourceOperations(definition, definitions, maxPerPage),
    ),
    ...webhookOperations(maxPerPage),
    ...deliveryOperations(maxPerPage),
    ...replayOperations(maxPerPage),
    ...eventOperations(maxPerPage, [...definitions.keys()]),
    ...userOperations(maxPerPage),
    ...operationOperations(maxPerPage),
    ...serviceOperations(openApi === "public"),
  ];
}

function tagsOf(definitions: Definitions): readonly JsonSchema[] {
  return [
    ...[...definitions.values()].map((definition) => {
      const key = keyPaths(definition, definitions);
      return {
        name: definition.name,
        description: `Records of ${definition.name}.`,
        ...(key !== undefined && { "x-key": key }),
      };
    }),
    { name: "Webhooks", description: "Subscriptions, and the requests that they bring." },
    { name: "Deliveries", description: "What was sent to subscriptions, and how that went." },
    { name: "Events", description: "What happened, for consumers that ask for it." },
    { name: "Tokens", description: "The caller, and the caller's own tokens." },
    { name: "Users", description: "Users, for admins." },
    { name: "Operations", description: "How it goes, and the work of operators." },
    { name: "Service", description: "What is served." },
  ];
}

const description = [
  "REST API over PostgreSQL, with signed webhooks. This document describes the configuration of the service, and is the same for every token: what a token may see and do is decided by each request.",
  "`HEAD` works wherever `GET` does, and `OPTIONS` answers 204 with `Allow`. A method that a path does not have is 405 (`operation.unsupported`). A path that is not here is 404 (`route.not_found`, `resource.not_found`).",
].join("\n\n");
