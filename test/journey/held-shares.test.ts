import { expect } from "chai";
import { createNote, notesYaml, subscribe } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("held deliveries of several users", function () {
  this.timeout(60_000);
  let service: TestService;
  let ada: TestUser;
  let eve: TestUser;
  let many: TestReceiver;
  let one: TestReceiver;

  before(async () => {
    // One subscription at a time sends held deliveries.
    service = await startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      webhooks: { concurrency: 16 },
    });
    [ada, eve] = [await service.createUser(), await service.createUser()];
    [many, one] = [await startReceiver(), await startReceiver()];
  });
  after(async () => {
    await service.stop();
    await many.close();
    await one.close();
  });

  it("take turns: many of one user delay another's by a bounded number of attempts", async () => {
    const total = 80;
    const [first, second] = [await pausedBy(ada, many, total), await pausedBy(eve, one, 1)];
    let before: number | undefined;
    one.answer = (_request, response) => {
      before = many.received.length;
      response.writeHead(200).end();
    };

    await ada.request("PUT", `/webhooks/${first}`, { is_active: true });
    await many.waitFor(1);
    await eve.request("PUT", `/webhooks/${second}`, { is_active: true });
    await one.waitFor(1);
    await many.waitFor(total);

    expect(before).to.be.below(total);
    const texts = many.received.map(({ rawBody }) => JSON.parse(rawBody.toString()).data.text);
    expect(texts).to.deep.equal(Array.from({ length: total }, (_, number) => String(number)));
  });
});

async function pausedBy(user: TestUser, receiver: TestReceiver, notes: number): Promise<number> {
  const { id } = await subscribe(user, receiver);
  await user.request("PUT", `/webhooks/${id}`, { is_active: false });
  for (let number = 0; number < notes; number += 1) await createNote(user, String(number));
  await until(
    async () =>
      (await user.request("GET", `/webhook-deliveries?webhook_id=${id}&status=held`)).body.total === notes,
    { what: `${notes} held deliveries` },
  );
  return id;
}
