import { expect } from "chai";
import { createNote, notesYaml, subscribe, untilDelivery } from "../support/notes.ts";
import { openRaw } from "../support/raw.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("a delivery with a large payload", () => {
  let service: TestService;
  let receiver: TestReceiver;
  let ada: TestUser;

  before(async () => {
    receiver = await startReceiver();
    service = await startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml.replace("type: String", "type: String, length: 1000000") },
      // One user may have half of it.
      http: { memoryBudgetBytes: 24 * 1024 ** 2 },
    });
    ada = await service.createUser();
  });

  after(async () => {
    await service.stop();
    await receiver.close();
  });

  it("is not read before there is memory for all its forms", async () => {
    const { id: webhookId } = await subscribe(ada, receiver);
    await createNote(ada, "a".repeat(600_000));
    const { id } = await untilDelivery(ada, webhookId, "delivered");
    const path = `/webhook-deliveries/${id}`;
    // Its memory is reserved before it arrives.
    const body = await openRaw(service.api.port);
    body.send(
      `POST /svc-api/resources/notes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ada.token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 650000\r\nExpect: 100-continue\r\n\r\n",
    );
    await until(() => body.received().startsWith("HTTP/1.1 100"), { what: "a body that is asked for" });

    expect((await ada.request("GET", path)).status).to.equal(503);

    body.socket.destroy();
    const shown = await until(
      async () => {
        const answer = await ada.request("GET", path);
        return answer.status === 200 && answer;
      },
      { what: "the delivery" },
    );
    expect(shown.body.request.body).to.have.length.above(600_000);
  });
});
