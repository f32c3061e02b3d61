import { expect } from "chai";
import { createPublishWindow, type PublishWindow } from "../../src/events/publish-window.ts";

const mib = 1024 ** 2;

const eventsOf = (ownerId: string, count: number, bytes = 1): Parameters<PublishWindow["fitting"]>[1] =>
  Array.from({ length: count }, () => ({ ownerId, resource: "papers", bytes }));

describe("createPublishWindow", () => {
  let nowMs: number;
  let window: PublishWindow;

  beforeEach(() => {
    nowMs = 50_000;
    window = createPublishWindow({ costly: ["papers"], now: () => nowMs });
  });

  function enter(id: string, given: Partial<Parameters<PublishWindow["enter"]>[0]> = {}): void {
    window.enter({ id, uuid: id, transaction: "9", resource: "notes", ownerId: "7", bytes: 10, ...given });
  }
  function enterMany(count: number, given: Parameters<typeof enter>[1] = {}): void {
    for (let id = 1; id <= count; id += 1) enter(String(id), given);
  }
  /** Records that an event has left the outbox, or is in it again. */
  const note = (id: string, isWaiting: boolean): readonly string[] =>
    window.note(new Set([id]), new Set(isWaiting ? [id] : []));

  it("has room for 1,000 events, for 4 MiB, and again when one has left", () => {
    enterMany(999);
    expect(window.hasRoom()).to.equal(true);
    enter("1000");
    expect(window.hasRoom()).to.equal(false);
    note("1000", false);
    expect(window.hasRoom()).to.equal(true);

    window.leave("999");
    enter("large", { bytes: 4 * mib - 9_980 });
    expect(window.hasRoom()).to.equal(false);
    window.leave("large");
    expect(window.limits().free).to.deep.equal({ events: 2, bytes: 4 * mib - 9_980 });
  });

  it("counts an event once that enters twice, or comes back to the outbox after it had left", () => {
    enter("1");
    enter("1");
    note("1", false);
    expect(window.limits().used.size).to.equal(0);
    note("1", true);
    note("1", true);

    expect(window.limits().used).to.deep.equal(new Map([["7", { events: 1, bytes: 10 }]]));
    expect(window.limits().free.events).to.equal(999);
    window.leave("1");
    expect(window.limits().free).to.deep.equal({ events: 1_000, bytes: 4 * mib });
  });

  it("counts the events in flight of each holder, without those that have left", () => {
    enter("1", { bytes: 300 });
    enter("2", { bytes: 20 });
    enter("3", { ownerId: null });
    window.leave("1");

    expect(window.limits().used).to.deep.equal(
      new Map([
        ["7", { events: 1, bytes: 20 }],
        ["resource notes", { events: 1, bytes: 10 }],
      ]),
    );
  });

  it("returns the events in flight of a transaction and of later ones", () => {
    for (const id of ["8", "9", "10"]) enter(id, { transaction: id });
    note("10", false);

    expect(window.idsInFlightFrom(9n)).to.deep.equal(["9"]);
    expect(window.idsInFlightFrom(0n)).to.deep.equal(["8", "9"]);
  });

  it("forgets an event two seconds after it has left the outbox: a crash may bring it back until then", () => {
    enter("1");
    expect(note("1", false)).to.deep.equal([]);
    nowMs += 2_000;
    expect([note("1", false), window.has("1")]).to.deep.equal([[], true]);
    expect([window.idsInFlight(), window.ids()]).to.deep.equal([[], ["1"]]);
    nowMs += 1;

    expect([note("1", false), window.has("1")]).to.deep.equal([["1"], false]);
    expect(note("1", false)).to.deep.equal([]);
  });

  it("keeps an event that comes back, and for two seconds again when it has left again", () => {
    enter("1");
    note("1", false);
    nowMs += 2_001;
    expect([note("1", true), window.idsInFlight()]).to.deep.equal([[], ["1"]]);
    nowMs += 2_001;

    expect([note("1", false), window.ids()]).to.deep.equal([[], ["1"]]);
  });

  it("gives a costly resource separate room, also for events left over", () => {
    enterMany(175, { resource: "papers", isLeftOver: true });
    expect([window.roomOf("papers"), window.roomOf("notes")]).to.deep.equal([25, Infinity]);
    expect([window.hasRoomToCatchUp(), window.limits().free.events]).to.deep.equal([true, 1_000]);

    enter("176", { resource: "papers" });
    expect(window.roomOf("papers")).to.equal(0);
  });

  it("leaves as many events and bytes of a costly resource free as one holder has", () => {
    const taken = window.fitting("papers", [...eventsOf("1", 150), ...eventsOf("2", 60)]);
    expect([taken.length, taken.filter(({ ownerId }) => ownerId === "2").length]).to.deep.equal([150, 50]);
    expect(window.fitting("notes", eventsOf("1", 300))).to.have.length(300);

    expect(window.limits().full).to.deep.equal([]);
    enterMany(100, { resource: "papers", ownerId: "1" });
    enter("101", { resource: "papers", ownerId: "2" });
    expect(window.limits().full).to.deep.equal([["papers", "1"]]);
    window.resize("101", mib / 2 - 501);
    expect(window.limits().full).to.deep.equal([["papers", "1"]]);
    window.resize("101", mib / 2);
    expect(window.limits().full).to.deep.equal([
      ["papers", "1"],
      ["papers", "2"],
    ]);
    expect(window.hasRoomFor("101")).to.equal(false);
    expect(window.fitting("papers", eventsOf("3", 2, mib / 4))).to.have.length(1);
  });

  it("divides the room among many costly resources, with room for ten events of each", () => {
    const rooms = [1, 5, 6, 10, 100, 1_000].map((count) => {
      const costly = Array.from({ length: count }, (_, index) => String(index));
      return createPublishWindow({ costly, now: () => nowMs }).roomOf("0");
    });

    expect(rooms).to.deep.equal([200, 200, 166, 100, 10, 10]);
  });

  it("does not count costly events in flight for their holder's share of the common room", () => {
    enterMany(100, { resource: "papers" });
    enter("101");

    expect(window.limits().used).to.deep.equal(new Map([["7", { events: 1, bytes: 10 }]]));
    note("1", false);
    window.leave("2");
    window.leave("101");
    expect(window.limits().used.size).to.equal(0);
  });

  it("reserves most of the room for new events", () => {
    enterMany(49, { isLeftOver: true });
    expect(window.hasRoomToCatchUp()).to.equal(true);
    enter("50");
    expect(window.hasRoomToCatchUp()).to.equal(true);
    enter("51", { isLeftOver: true });
    expect(window.hasRoomToCatchUp()).to.equal(false);

    for (const id of window.ids()) window.leave(id);
    enter("52", { isLeftOver: true, bytes: mib / 2 - 1 });
    expect(window.hasRoomToCatchUp()).to.equal(true);
    window.resize("52", mib / 2);
    expect(window.hasRoomToCatchUp()).to.equal(false);
  });

  it("returns those that take too long; a costly resource's may take longer", () => {
    enter("1");
    enter("2", { resource: "papers" });
    nowMs += 100_000;
    window.sent(["gone", "1", "2"]);
    nowMs += 5_000;
    expect(window.olderThan(5_000, 60_000)).to.deep.equal([]);
    nowMs += 1;
    expect(window.olderThan(5_000, 60_000)).to.deep.equal(["1"]);
    nowMs += 55_000;
    note("1", false);

    expect(window.olderThan(5_000, 60_000)).to.deep.equal(["2"]);
  });

  it("counts the bytes of messages once they are known, and leaves as much room as a holder has", () => {
    for (const id of ["1", "2", "3"]) enter(id);
    enter("4", { resource: "papers" });
    window.resize("1", 2 * mib - 30);
    expect([window.hasRoomFor("2"), window.limits().free.bytes]).to.deep.equal([true, 2 * mib + 10]);
    window.resize("2", 30);
    expect([window.hasRoomFor("3"), window.hasRoomFor("4"), window.hasRoomFor("5")]).to.deep.equal([
      false,
      true,
      false,
    ]);
    window.resize("4", mib);
    expect([window.hasRoomFor("4"), window.roomOf("papers")]).to.deep.equal([false, 0]);

    for (const id of ["1", "2", "3"]) window.leave(id);
    window.resize("1", mib);
    expect([window.limits().free.bytes, window.limits().used.size]).to.deep.equal([4 * mib, 0]);
  });

  it("has no room for a costly resource while all of them together have 40 MB in flight", () => {
    window = createPublishWindow({ costly: ["papers", "maps", "plans"], now: () => nowMs });
    enter("1", { resource: "papers", bytes: 20 * mib });
    enter("2", { resource: "maps", bytes: 20 * mib - 1 });
    expect(window.roomOf("plans")).to.equal(200);

    window.resize("2", 20 * mib);

    expect([window.roomOf("plans"), window.roomOf("notes"), window.hasRoom()]).to.deep.equal([
      0,
      Infinity,
      true,
    ]);
  });

  it("lets the first message of a group exceed the capacity, unless others use all of it", () => {
    for (const id of ["1", "2"]) enter(id);
    enter("4", { resource: "papers" });
    window.resize("1", 5 * mib);
    expect([window.hasRoomFor("1"), window.hasRoomForFirst("1", 5 * mib)]).to.deep.equal([false, true]);

    const large = 16 * 1024 + 1;
    expect(["2", "4"].map((id) => window.hasRoomForFirst(id, large))).to.deep.equal([false, true]);
    expect(window.hasRoomForFirst("2", large - 1)).to.equal(true);
    window.leave("1");
    expect(window.hasRoomForFirst("2", large)).to.equal(true);
  });

  it("returns those that a later one has overtaken, except those of a costly resource", () => {
    for (const id of ["1", "3", "5", "6"]) enter(id);
    enter("2", { resource: "papers" });
    enter("4", { resource: "letters" });
    window.sent(["1", "2", "3", "5"]);
    nowMs += 10;
    window.sent(["4"]);
    note("3", false);
    // Another process has sent it.
    note("6", false);
    expect(window.overtaken(9)).to.deep.equal([]);
    note("4", false);
    note("5", false);

    expect([window.overtaken(9), window.overtaken(10)]).to.deep.equal([["1"], []]);
  });
});
