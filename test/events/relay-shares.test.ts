import { expect } from "chai";
import { createRelayShares } from "../../src/events/relay-shares.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";

describe("createRelayShares", () => {
  let core: CoreDatabase;

  before(async () => {
    core = await openCoreDatabase();
  });

  beforeEach(() => core.sql("DELETE FROM svc.relays"));

  after(() => core.close());

  const sharesOf = (name: string) => createRelayShares({ sql: core.sql, name });
  const age = (name: string, seconds: number): Promise<unknown> =>
    core.sql("UPDATE svc.relays SET seen_at = now() - $2 * interval '1 second' WHERE name = $1", [
      name,
      seconds,
    ]);

  it("gives a relay that is alone everything", async () => {
    expect(await sharesOf("a").beat()).to.deep.equal({ name: "a", others: [], index: 0 });
  });

  it("gives each of several another place, whoever came first", async () => {
    for (const name of ["c", "a", "b"]) await sharesOf(name).beat();

    expect([
      await sharesOf("a").beat(),
      await sharesOf("b").beat(),
      await sharesOf("c").beat(),
    ]).to.deep.equal([
      { name: "a", others: ["b", "c"], index: 0 },
      { name: "b", others: ["a", "c"], index: 1 },
      { name: "c", others: ["a", "b"], index: 2 },
    ]);
  });

  it("leaves out one that has left, and one that says nothing for four seconds, until it does", async () => {
    for (const name of ["a", "b", "c"]) await sharesOf(name).beat();
    await sharesOf("c").leave();
    await age("b", 3);
    expect(await sharesOf("a").beat()).to.have.deep.property("others", ["b"]);
    await age("b", 5);
    expect(await sharesOf("a").beat()).to.have.deep.property("others", []);

    await sharesOf("b").beat();

    expect(await sharesOf("a").beat()).to.have.deep.property("others", ["b"]);
  });

  it("leaves out one that died before the database's clock went back", async () => {
    for (const name of ["a", "b"]) await sharesOf(name).beat();
    await age("b", -60);

    expect(await sharesOf("a").beat()).to.have.deep.property("others", []);
  });

  it("forgets one of an hour ago", async () => {
    await sharesOf("old").beat();
    await age("old", 3_700);

    await sharesOf("a").beat();

    expect(await core.sql("SELECT name FROM svc.relays")).to.deep.equal([{ name: "a" }]);
  });
});
