import { tokenShape, userShape } from "../../users/lists.ts";
import { changedUserRules, newTokenRules, newUserRules } from "../../users/bodies.ts";
import { bodySchema } from "../body-schemas.ts";
import { listSchema } from "../envelopes.ts";
import { closed, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { listParameters, listRemarks } from "../list-parameters.ts";
import {
  idParameter,
  pathParameter,
  sectionOf,
  type Operation,
  type SectionOperation,
} from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";
import { keySchemas, text } from "../value-schemas.ts";

const token = keySchemas(tokenShape);
const shownUser = keySchemas(userShape);

/** The schemas of users and tokens (docs/authentication.md, "Own tokens" and "Users"). */
export const userSchemas: Readonly<Record<string, JsonSchema>> = {
  Caller: objectOf({ id: { type: "integer" }, name: text, email: text }),
  Token: objectOf(token),
  "Token.listed": objectOf(token, { optional: "all" }),
  "Token.made": objectOf({ ...token, token: { ...text, description: "Shown this once." } }),
  "Token.create": closed(bodySchema(newTokenRules, [])),
  User: objectOf(shownUser),
  "User.listed": objectOf(shownUser, { optional: "all" }),
  "User.create": closed(bodySchema(newUserRules, [])),
  "User.update": closed(bodySchema(changedUserRules, [])),
};

/** The operations of `whoami`, `tokens` and `users`. */
export function userOperations(maxPerPage: number): readonly Operation[] {
  return [
    ...sectionOf({ tag: "Tokens", scope: "any" }, tokenOperations(maxPerPage)),
    ...sectionOf({ tag: "Users", scope: "admin" }, adminOperations(maxPerPage)),
  ];
}

const newToken = {
  body: { schema: schemaNamed("Token.create"), example: { name: "import", scopes: ["read"] } },
  answers: {
    201: {
      description: "The token, shown this once.",
      schema: schemaNamed("Token.made"),
      headers: ["Location"],
    },
  },
} as const;

function tokenOperations(maxPerPage: number): readonly SectionOperation[] {
  return [
    {
      method: "get",
      path: "/whoami",
      id: "svc.whoami",
      summary: "Shows the token's user",
      answers: { 200: { description: "The user.", schema: schemaNamed("Caller") } },
    },
    {
      method: "get",
      path: "/tokens",
      id: "svc.tokens.list",
      summary: "Lists the caller's own tokens, spent ones too",
      description: listRemarks(tokenShape),
      parameters: listParameters(tokenShape, { maxPerPage, count: "exact" }),
      answers: { 200: { description: "A page.", schema: listSchema(schemaNamed("Token.listed")) } },
    },
    {
      ...newToken,
      method: "post",
      path: "/tokens",
      id: "svc.tokens.create",
      summary: "Makes a token with at most the scopes of this one",
      parameters: idempotencyKey,
      errors: ["token.scope", "token.refused"],
    },
    {
      method: "get",
      path: "/tokens/{id}",
      id: "svc.tokens.show",
      summary: "Shows a token of the caller's own, without its text",
      parameters: [idParameter],
      answers: { 200: { description: "The token.", schema: schemaNamed("Token") } },
      errors: ["token.not_found"],
    },
    {
      method: "delete",
      path: "/tokens/{id}",
      id: "svc.tokens.delete",
      summary: "Revokes a token, and those that were made with it",
      parameters: [idParameter],
      answers: { 204: { description: "It is revoked." } },
      errors: ["token.not_found", "token.scope"],
    },
  ];
}

function adminOperations(maxPerPage: number): readonly SectionOperation[] {
  const user = { description: "The user.", schema: schemaNamed("User") };
  const update = {
    path: "/users/{id}",
    summary: "Changes the fields of a user that are sent",
    parameters: [idParameter],
    body: { schema: schemaNamed("User.update"), example: { name: "Ada" }, isOptional: true },
    answers: { 200: user },
    errors: ["user.not_found", "user.last_admin"],
  } as const;
  return [
    {
      method: "get",
      path: "/users",
      id: "svc.users.list",
      summary: "Lists the users",
      description: listRemarks(userShape),
      parameters: listParameters(userShape, { maxPerPage, count: "exact" }),
      answers: { 200: { description: "A page.", schema: listSchema(schemaNamed("User.listed")) } },
    },
    {
      method: "post",
      path: "/users",
      id: "svc.users.create",
      summary: "Makes a user, who has no token yet",
      body: {
        schema: schemaNamed("User.create"),
        example: { name: "Grace", email: "grace@example.com", is_admin: false },
      },
      parameters: idempotencyKey,
      answers: { 201: { ...user, headers: ["Location"] } },
    },
    {
      method: "get",
      path: "/users/{id}",
      id: "svc.users.show",
      summary: "Shows a user",
      parameters: [idParameter],
      answers: { 200: user },
      errors: ["user.not_found"],
    },
    { ...update, method: "put", id: "svc.users.update" },
    { ...update, method: "patch", id: "svc.users.patch" },
    ...tokensOfUsers(maxPerPage),
  ];
}

function tokensOfUsers(maxPerPage: number): readonly SectionOperation[] {
  const path = "/users/{id}/tokens";
  return [
    {
      method: "get",
      path,
      id: "svc.users.listTokens",
      summary: "Lists a user's tokens, spent ones too",
      description: listRemarks(tokenShape),
      parameters: [idParameter, ...listParameters(tokenShape, { maxPerPage, count: "exact" })],
      answers: { 200: { description: "A page.", schema: listSchema(schemaNamed("Token.listed")) } },
      errors: ["user.not_found"],
    },
    {
      ...newToken,
      method: "post",
      path,
      id: "svc.users.createToken",
      summary: "Makes a token of a user's",
      parameters: [idParameter, ...idempotencyKey],
      errors: ["user.not_found"],
    },
    {
      method: "get",
      path: `${path}/{tokenId}`,
      id: "svc.users.showToken",
      summary: "Shows a user's token, without its text",
      parameters: [idParameter, pathParameter("tokenId", idParameter.schema, 1)],
      answers: { 200: { description: "The token.", schema: schemaNamed("Token") } },
      errors: ["user.not_found", "token.not_found"],
    },
    {
      method: "delete",
      path: `${path}/{tokenId}`,
      id: "svc.users.deleteToken",
      summary: "Revokes a user's token, and those that were made with it",
      parameters: [idParameter, pathParameter("tokenId", idParameter.schema, 1)],
      answers: { 204: { description: "It is revoked." } },
      errors: ["user.not_found", "token.not_found"],
    },
  ];
}
