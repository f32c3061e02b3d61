import { expect } from "chai";
import { createNote, subscribe, untilDelivery } from "./notes.ts";
import type { TestReceiver } from "./receiver.ts";
import { request, type Answer, type TestService } from "./service.ts";
import { until } from "./wait.ts";

/**
 * Makes a change by every kind of request, and expects success. The receiver must answer with
 * failures, and a delivery must have one attempt only.
 */
export async function requestChanges(service: TestService, receiver: TestReceiver): Promise<void> {
  const admin = await service.createUser({ isAdmin: true });
  const { id } = await subscribe(admin, receiver);
  const ask = async (method: string, path: string, body?: unknown): Promise<Answer["body"]> => {
    const answer = await admin.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).to.be.within(200, 299);
    return answer.body;
  };
  const kept = await request({
    url: `${service.baseUrl}/resources/notes`,
    method: "POST",
    token: admin.token,
    body: { text: "once" },
    headers: { "idempotency-key": "key-1" },
  });
  expect(kept.status).to.equal(201);
  const failed = await untilDelivery(admin, id, "failed");

  await ask("POST", `/webhook-deliveries/${failed.id}/retry`);
  await ask("POST", `/webhooks/${id}/test`, {});
  await ask("POST", `/webhooks/${id}/rotate-secret`, { grace: 60 });
  const replay = await ask("POST", `/webhooks/${id}/replay`, {
    since: failed.created_at,
    status: ["failed"],
  });
  await until(async () => (await ask("GET", `/webhook-replays/${replay.id}`)).state === "done", {
    what: "a replay that is done",
  });
  await ask("PATCH", `/webhooks/${id}`, { is_active: false });
  await createNote(admin);
  await untilDelivery(admin, id, "held");
  await ask("POST", `/webhooks/${id}/discard-held`);
  await untilDelivery(admin, id, "cancelled");
  const bob = await ask("POST", "/users", { name: "Bob", email: "bob.two@example.com" });
  await ask("PATCH", `/users/${bob.id}`, { name: "Robert" });
  const made = await ask("POST", "/tokens", { name: "another" });
  await ask("DELETE", `/tokens/${made.id}`);
  await ask("DELETE", `/webhooks/${id}`);
}
