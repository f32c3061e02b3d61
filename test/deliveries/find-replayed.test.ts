import { expect } from "chai";
import { findReplayed, rangeOf } from "../../src/deliveries/replay/find-replayed.ts";
import { coreOfSuite } from "../support/core-database.ts";

const since = "2026-03-01T00:00:00.000Z";
const until = "2026-03-02T00:00:00.000Z";

const at = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

describe("findReplayed", () => {
  const core = coreOfSuite();

  const addEvent = async (occurredAt: string): Promise<string> => {
    const [row] = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot, occurred_at)
       VALUES ('notes', 'on_create', '1', '{}', $1::timestamptz) RETURNING id::text`,
      [occurredAt],
    );
    return row?.id ?? "";
  };

  it("finds events in the time span, its begin included and its end not, without unfinished deliveries", async () => {
    const first = await addEvent(since);
    await addEvent(until);
    const underWay = await addEvent(since);
    const last = await addEvent("2026-03-01T23:59:59.999Z");
    await core.sql("DELETE FROM svc.outbox WHERE event_id <> $1", [underWay]);
    const user = { id: 1, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };
    const subscription = {
      id: 1,
      resource: "notes",
      events: ["on_create"],
      filter: null,
      isActive: true,
      user,
    } as const;

    const found = await findReplayed(core.sql, {
      asked: { since, until, status: ["never"], events: null, resource: null },
      subscription,
      after: "0",
      untilId: "1000",
      look: 10,
      take: 10,
    });

    expect(found.events.map(({ id }) => id)).to.deep.equal([first, last]);
    expect(found).to.include({ last: "1000", isEnd: true });
  });

  it("ends at the last event when events before it have times of a clock that was ahead", async () => {
    for (const hours of [-2, -2, -2, 24, 24, 24, 24, 24, 24]) await addEvent(at(hours));
    const last = await addEvent(at(-0.01));

    const { after, untilId } = await rangeOf(core.sql, { since: at(-1), until: at(0) });

    expect(untilId).to.equal(last);
    expect(BigInt(after) < BigInt(last)).to.equal(true);
  });
});
