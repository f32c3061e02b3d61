import { errorStatus, type ErrorCode } from "../../src/kit/errors.ts";
import { expect } from "chai";
import { call, type Answer, type Call } from "../support/http.ts";
import type { TestService, TestUser } from "../support/service.ts";

/** A resource with a field of every type, and rules derived from them. */
export const things = `
name: things
model: Thing
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
searchableColumns: [title, body]
fields:
  id: { type: Int, id: true }
  title: { type: String, length: 40, unique: true }
  body: { type: String, optional: true }
  size: { type: Int, optional: true }
  big: { type: BigInt, optional: true }
  ratio: { type: Float, optional: true }
  price: { type: Decimal, precision: 12, scale: 2, optional: true }
  is_done: { type: Boolean, default: false }
  due_at: { type: DateTime, optional: true }
  meta: { type: Json, optional: true }
  data: { type: Bytes, optional: true }
  token: { type: Uuid, optional: true }
  state: { type: Enum, values: [open, paid], default: open }
  tags: { type: String, list: true, default: [] }
  parent_id: { type: Int, optional: true, references: things.id, as: parent, onDelete: restrict }
  user_id: { type: Int }
  created_at: { type: DateTime, default: now }
  updated_at: { type: DateTime, updatedAt: true }
`;

/**
 * Checks that an answer is an error of the contract: JSON with a message and the code of the
 * status. It has `errors` exactly when it is a 422.
 */
export function expectRefusal(answer: Answer, status: number): void {
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.headers["content-type"]).to.equal("application/json; charset=utf-8");
  expect(answer.headers["x-request-id"]).to.match(/^[\w.-]+$/);
  const { message, code, errors, ...rest } = answer.json as Record<string, unknown>;
  expect(rest).to.deep.equal({});
  expect(errorStatus[code as ErrorCode]).to.equal(status);
  expect(message).to.be.a("string").and.not.equal("");
  expect(answer.text).to.not.match(/node_modules|\.[jt]s:\d|[Pp]risma|SELECT|svc\./);
  if (status !== 422) {
    expect(errors).to.equal(undefined);
    return;
  }
  expect(errors).to.be.an("object");
  const messages = Object.values(errors as Record<string, unknown>).flat();
  expect(messages).to.not.have.length(0);
  expect(messages.every((each) => typeof each === "string" && each !== "")).to.equal(true);
  expect(message).to.satisfy((summary: string) => summary.startsWith(String(messages[0])));
}

export type Send = (method: string, path: string, options?: Call) => Promise<Answer>;

/**
 * Sends requests with a user's token, path, headers and body unchanged; a body is JSON unless a
 * header names another type.
 */
export function sendAs(service: TestService, { token }: TestUser): Send {
  return (method, path, { headers = {}, body } = {}) =>
    call(service.api.port, service.config.http.routePrefix + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
}
