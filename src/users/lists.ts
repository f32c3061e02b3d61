import { fixedShape } from "../querying/fixed-shape.ts";
import type { OwnList } from "../querying/own-list.ts";

export const tokenShape = fixedShape([
  { name: "id", type: "Int" },
  { name: "user_id", type: "Int" },
  { name: "name", type: "String" },
  { name: "scopes", type: "String", isList: true },
  { name: "parent_id", type: "Int", isOptional: true },
  { name: "created_at", type: "DateTime" },
  { name: "last_used_at", type: "DateTime", isOptional: true },
  { name: "expires_at", type: "DateTime", isOptional: true },
  { name: "revoked_at", type: "DateTime", isOptional: true },
]);

export const userShape = fixedShape([
  { name: "id", type: "Int" },
  { name: "name", type: "String" },
  { name: "email", type: "String" },
  { name: "is_admin", type: "Boolean" },
  { name: "is_disabled", type: "Boolean" },
  { name: "disabled_at", type: "DateTime", isOptional: true },
  { name: "subject", type: "String", isOptional: true },
  { name: "created_at", type: "DateTime" },
  { name: "updated_at", type: "DateTime" },
]);

/** Returns the list of a user's tokens, newest first, including expired and revoked ones. */
export function tokensOf(userId: number): OwnList {
  return {
    name: `tokens of ${userId}`,
    shape: tokenShape,
    direction: "desc",
    source: (parameters) => `SELECT * FROM svc.tokens WHERE user_id = ${parameters.add(userId)}`,
  };
}

/** The list of all users, by id. */
export const allUsers: OwnList = {
  name: "users",
  shape: userShape,
  direction: "asc",
  source: () => "SELECT *, disabled_at IS NOT NULL AS is_disabled FROM svc.users",
};
