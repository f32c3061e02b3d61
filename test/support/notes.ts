import { expect } from "chai";
import type { TestReceiver } from "./receiver.ts";
import type { Answer, TestUser } from "./service.ts";
import { until } from "./wait.ts";

/** A resource with an owner and every trigger. */
export const notesYaml = `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
`;

/**
 * Subscribes a user to all notes events at `<receiver>/hook`, with `changes`. Returns the
 * subscription, secret included.
 */
export async function subscribe(
  user: TestUser,
  receiver: TestReceiver,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<Answer["body"]> {
  const events = ["on_create", "on_update", "on_delete"];
  const body = { url: `${receiver.url}/hook`, resource: "notes", events, ...changes };
  const answer = await user.request("POST", "/webhooks", body);
  expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
  return answer.body;
}

export async function createNote(user: TestUser, text = "hello"): Promise<Answer["body"]> {
  const answer = await user.request("POST", "/resources/notes", { text });
  expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
  return answer.body;
}

/**
 * Returns the newest delivery of a subscription with the status, once it exists, with its attempts.
 */
export async function untilDelivery(
  user: TestUser,
  webhookId: number,
  status: string,
): Promise<Answer["body"]> {
  const list = `/webhook-deliveries?webhook_id=${webhookId}&status=${status}`;
  const found = await until(async () => (await user.request("GET", list)).body.data[0], {
    what: `a delivery of webhook ${webhookId} that is ${status}`,
  });
  return (await user.request("GET", `/webhook-deliveries/${found.id}`)).body;
}

export async function unsubscribeAll(user: TestUser): Promise<void> {
  for (const { id } of (await user.request("GET", "/webhooks")).body.data) {
    await user.request("DELETE", `/webhooks/${id}`);
  }
}
