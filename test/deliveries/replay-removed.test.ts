import { expect } from "chai";
import { notesYaml, subscribe } from "../support/notes.ts";
import { startReceiver } from "../support/receiver.ts";
import { serviceOfSuite } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("a replay of a resource that left the mapping files", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });

  it("sends no record of it to its owner, who may not have been allowed to read it", async () => {
    const { sql } = service.infrastructure;
    const receiver = await startReceiver();
    const ada = await service.createUser();
    // An admin, who alone read the resource, received it.
    await sql(
      `WITH event AS (
         INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot) VALUES ('verdicts', 'on_create', '1', $1, '{}') RETURNING id
       )
       INSERT INTO svc.event_data (event_id, data) SELECT id, '{"verdict":"secret"}' FROM event`,
      [String(ada.id)],
    );
    await sql("DELETE FROM svc.outbox");
    const { id } = await subscribe(ada, receiver, { resource: "*" });
    const asked = { since: "2020-01-01T00:00:00Z", status: ["never"] };

    const counted = await ada.request("POST", `/webhooks/${id}/replay`, { ...asked, dry_run: true });
    const { body: replay } = await ada.request("POST", `/webhooks/${id}/replay`, asked);
    await until(
      async () => (await ada.request("GET", `/webhook-replays/${replay.id}`)).body.state === "done",
      { what: "the end of the replay" },
    );

    expect(counted.body).to.deep.equal({ count: 0, is_estimate: false, event_ids: [] });
    expect((await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`)).body.data).to.deep.equal([]);
    await receiver.close();
  });
});
