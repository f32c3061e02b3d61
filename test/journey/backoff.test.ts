import { expect } from "chai";
import { createNote, notesYaml, subscribe, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type TestService } from "../support/service.ts";

for (const mode of modes) {
  describe(`the waits between attempts (${mode})`, () => {
    let service: TestService;
    let receiver: TestReceiver;

    before(async () => {
      receiver = await startReceiver();
      service = await startService({
        mode,
        resources: { "notes.yaml": notesYaml },
        // Waits far shorter than the sweep's interval are kept too.
        webhooks: { maxAttempts: 4, backoffMs: [100, 250], sweepIntervalMs: 60_000 },
      });
    });
    after(async () => {
      await service.stop();
      await receiver.close();
    });

    it("are those of the backoff, the last one repeating, at any interval of the sweep", async () => {
      receiver.answer = { status: 500 };
      const ada = await service.createUser();
      const { id } = await subscribe(ada, receiver);

      await createNote(ada);
      const failed = await untilDelivery(ada, id, "failed");

      const startedAt = failed.attempts.map(({ started_at }: { started_at: string }) =>
        Date.parse(started_at),
      );
      const waits = startedAt.slice(1).map((time: number, index: number) => time - startedAt[index]);
      expect(waits).to.have.length(3);
      expect(waits[0]).to.be.at.least(100);
      expect(waits[1]).to.be.at.least(250);
      expect(waits[2]).to.be.at.least(250);
    });
  });
}
