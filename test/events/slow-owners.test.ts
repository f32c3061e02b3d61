import { expect } from "chai";
import { createSlowOwners, type SlowOwners } from "../../src/events/slow-owners.ts";

const ofOwner = (ownerId: string | null, recordId = "1", resource = "notes") => ({
  resource,
  ownerId,
  recordId,
});

describe("createSlowOwners", () => {
  let nowMs: number;
  let slow: SlowOwners;
  /** Notes that events took 2 s, while others were presented or not. */
  const fail = (
    events: Parameters<SlowOwners["tookTooLong"]>[0],
    { areNew = true, presented }: { readonly areNew?: boolean; readonly presented?: string } = {},
  ): boolean => {
    const startedAtMs = nowMs;
    nowMs += 1_000;
    if (presented !== undefined) slow.presented(presented);
    nowMs += 1_000;
    return slow.tookTooLong(events, { startedAtMs, areNew });
  };
  beforeEach(() => {
    nowMs = 0;
    slow = createSlowOwners({ now: () => nowMs });
  });

  it("counts an owner as slow for a minute, for one resource, when others were presented meanwhile", () => {
    fail([ofOwner("7"), ofOwner("7", "2")], { presented: "notes" });

    expect([
      slow.has(ofOwner("7", "3")),
      slow.has(ofOwner("8")),
      slow.has(ofOwner("7", "1", "papers")),
    ]).to.deep.equal([true, false, false]);
    nowMs += 59_999;
    expect(slow.has(ofOwner("7"))).to.equal(true);
    nowMs += 1;
    expect(slow.has(ofOwner("7"))).to.equal(false);
  });

  it("counts no owner as slow of several, or when none of the resource was presented meanwhile", () => {
    fail([ofOwner("7"), ofOwner("8")], { presented: "notes" });
    fail([ofOwner("7")]);
    fail([ofOwner("7")], { presented: "papers" });

    expect([slow.has(ofOwner("7")), slow.has(ofOwner("8"))]).to.deep.equal([false, false]);
  });

  it("counts single records as slow where they have no owner", () => {
    fail([ofOwner(null, "1")], { presented: "notes" });

    expect([slow.has(ofOwner(null, "1")), slow.has(ofOwner(null, "2"))]).to.deep.equal([true, false]);
  });

  it("groups failed events by owner for a minute after some of their resource took too long", () => {
    const groups = (): number =>
      new Set(
        [ofOwner("7"), ofOwner("8"), ofOwner(null, "1"), ofOwner(null, "2")].map((event) =>
          slow.groupOf(event),
        ),
      ).size;
    expect(groups()).to.equal(1);

    fail([ofOwner("7"), ofOwner("8")]);

    expect(groups()).to.equal(4);
    nowMs += 60_000;
    expect(groups()).to.equal(1);
  });

  it("reports a resource at the second failure of new events, when none was presented between", () => {
    expect(fail([ofOwner("7")])).to.equal(false);
    expect(fail([ofOwner("7")], { areNew: false })).to.equal(false);
    expect(fail([ofOwner("8")])).to.equal(true);
    slow.presented("notes");
    expect(fail([ofOwner("9")])).to.equal(false);
    expect(fail([ofOwner("9", "1", "papers")])).to.equal(false);
  });
});
