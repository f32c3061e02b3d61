import { expect } from "chai";
import type { Caller } from "../../src/kit/caller.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import type { UserGroup } from "../../src/subscriptions/eligibility.ts";
import { definition, definitionsOf, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";
import { createMemoryLog } from "../support/http.ts";

const ada: Caller = { id: 7, name: "Ada", email: "Ada@example.com", isAdmin: false, claims: {} };
const ben: Caller = { id: 8, name: "Ben", email: "ben@example.com", isAdmin: true, claims: {} };
const users = [ada, ben];
const owners = ["7", "8", "07", "x", "2147483648", null];
const events = owners.map((owner_id) => ({ id: "1", resource: "orders", owner_id }));

const throws = (): boolean => {
  throw new Error("a bug");
};

/** Owners whose events Ada and Ben get. */
const none: Readonly<Record<7 | 8, readonly string[]>> = { 7: ["7"], 8: ["8"] };
const rules: readonly (readonly [string, Partial<Definition>, typeof none])[] = [
  ["nobody is an admin", { isAdmin: { kind: "nobody" } }, none],
  ["the flag makes admins", { isAdmin: { kind: "flag" } }, { ...none, 8: owners as string[] }],
  [
    "addresses make admins",
    { isAdmin: { kind: "emails", emails: ["ADA@example.com"] } },
    { ...none, 7: owners as string[] },
  ],
  ["code decides", { code: { isAdmin: ({ id }) => id === 7 } }, { ...none, 7: owners as string[] }],
  [
    "only admins read, whoever owns the record",
    { access: { ...ownersOnly, read: { kind: "admin" } }, isAdmin: { kind: "flag" } },
    { 7: [], 8: owners as string[] },
  ],
  ["code throws", { code: { isAdmin: throws } }, none],
];

const includes = (group: UserGroup, user: Caller): boolean =>
  group.kind === "everybody" ||
  (group.kind === "flag" && user.isAdmin) ||
  (group.kind === "email" && group.email === user.email.toLowerCase()) ||
  (group.kind === "owner" && group.userId === user.id);

describe("createEligibility", () => {
  for (const [what, overrides, expected] of rules) {
    describe(`when ${what}`, () => {
      const { log } = createMemoryLog();
      const definitions = definitionsOf(definition({ name: "orders", fields: [], ...overrides }));
      const eligibility = eligibilityOf(definitions, { log });

      it("judges each pair of an event and a user", async () => {
        for (const user of users) {
          const judged = await eligibility.judge(events.map((event) => ({ event, user })));

          const got = owners.filter((_, index) => judged[index]);
          expect(got, user.name).to.deep.equal(expected[user.id as 7 | 8]);
        }
      });

      it("finds the same readers for many events at once", async () => {
        const { ofAll, ofEach } = (await eligibility.readerSelectorOf("orders", events)).choose(users);

        for (const user of users) {
          const got = owners.filter(
            (_, index) => ofAll.has(user.id) || [ofEach[index]].flat().includes(user.id),
          );
          expect(got, user.name).to.deep.equal(expected[user.id as 7 | 8]);
        }
      });

      it("has every reader in the groups that a statement narrows by", async () => {
        for (const event of events) {
          const groups = (await eligibility.readerSelectorOf("orders", [event])).groupsOf([0]);
          const judged = await eligibility.judge(users.map((user) => ({ event, user })));

          const readers = users.filter((_, index) => judged[index]);
          const missed = readers.filter((user) => !groups.some((group) => includes(group, user)));
          expect(missed, String(event.owner_id)).to.deep.equal([]);
          // The statement has ids as int.
          expect(groups).to.not.deep.include({ kind: "owner", userId: 2 ** 31 });
        }
      });
    });
  }

  it("gives the events of a resource without a mapping file to their owners", async () => {
    const eligibility = eligibilityOf(new Map());
    const event = { id: "1", resource: "gone", owner_id: "7" };

    expect(await eligibility.judge(users.map((user) => ({ event, user })))).to.deep.equal([true, false]);
    const selector = await eligibility.readerSelectorOf("gone", [event, event]);
    expect(selector.groupsOf([0, 1])).to.deep.equal([{ kind: "owner", userId: 7 }]);
  });

  it("gives operational events to admins only, as those of no owner", async () => {
    const eligibility = eligibilityOf(new Map());
    const event = { id: "1", resource: "service", owner_id: "7" };

    expect(await eligibility.judge(users.map((user) => ({ event, user })))).to.deep.equal([false, true]);
    const selector = await eligibility.readerSelectorOf("service", [event]);
    expect(selector.groupsOf([0])).to.deep.equal([{ kind: "flag" }]);
    expect(selector.choose(users)).to.deep.equal({ ofAll: new Set([8]), ofEach: [[]] });
  });

  it("logs the fault of a code module", async () => {
    const { log, lines } = createMemoryLog();
    const definitions = definitionsOf(definition({ name: "orders", fields: [], code: { isAdmin: throws } }));

    await eligibilityOf(definitions, { log }).judge([
      { event: { id: "1", resource: "orders", owner_id: null }, user: ada },
    ]);

    expect(lines[0]).to.include({ resource: "orders", msg: "isAdmin failed" });
  });
});
