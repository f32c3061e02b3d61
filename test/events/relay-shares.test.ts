import { expect } from "chai";
import { createRelayShares } from "../../src/events/relay-shares.ts";
import { coreOfSuite } from "../support/core-database.ts";

describe("createRelayShares", () => {
  const core = coreOfSuite();

  beforeEach(() => core.sql("DELETE FROM svc.relays"));

  const sharesOf = (name: string, resources: readonly string[] = ["notes"]) =>
    createRelayShares({ sql: core.sql, name, resources });
  const othersOf = async (name: string): Promise<readonly string[]> =>
    (await sharesOf(name).beat()).others.map((other) => other.name);
  const age = (name: string, seconds: number): Promise<unknown> =>
    core.sql("UPDATE svc.relays SET seen_at = now() - $2 * interval '1 second' WHERE name = $1", [
      name,
      seconds,
    ]);

  it("gives a single relay everything", async () => {
    expect(await sharesOf("a").beat()).to.deep.equal({ name: "a", others: [] });
  });

  it("returns each of the others by name, with the resources of their last beat", async () => {
    await sharesOf("b", ["notes"]).beat();
    await sharesOf("c", ["notes", "papers"]).beat();
    await sharesOf("b", ["papers"]).beat();

    expect(await sharesOf("a").beat()).to.deep.equal({
      name: "a",
      others: [
        { name: "b", resources: new Set(["papers"]) },
        { name: "c", resources: new Set(["notes", "papers"]) },
      ],
    });
  });

  it("treats a relay of the previous version, which names no resources, as knowing all", async () => {
    await core.sql("INSERT INTO svc.relays (name) VALUES ('before')");

    expect(await sharesOf("a").beat()).to.have.deep.property("others", [
      { name: "before", resources: undefined },
    ]);
  });

  it("is another share when another relay knows another resource", async () => {
    await sharesOf("b").beat();
    const before = await sharesOf("a").beat();
    expect(await sharesOf("a").beat()).to.deep.equal(before);

    await sharesOf("b", ["notes", "papers"]).beat();

    expect(await sharesOf("a").beat()).not.to.deep.equal(before);
  });

  it("omits a relay that has left, and one that is silent for four seconds, until it beats again", async () => {
    for (const name of ["a", "b", "c"]) await sharesOf(name).beat();
    await sharesOf("c").leave();
    await age("b", 3);
    expect(await othersOf("a")).to.deep.equal(["b"]);
    await age("b", 5);
    expect(await othersOf("a")).to.deep.equal([]);

    await sharesOf("b").beat();

    expect(await othersOf("a")).to.deep.equal(["b"]);
  });

  it("omits one that died before the database's clock was set back", async () => {
    for (const name of ["a", "b"]) await sharesOf(name).beat();
    await age("b", -60);

    expect(await othersOf("a")).to.deep.equal([]);
  });

  it("forgets one of an hour ago", async () => {
    await sharesOf("old").beat();
    await age("old", 3_700);

    await sharesOf("a").beat();

    expect(await core.sql("SELECT name FROM svc.relays")).to.deep.equal([{ name: "a" }]);
  });
});
