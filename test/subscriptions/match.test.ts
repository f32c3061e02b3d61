import { expect } from "chai";
import { makeCaller } from "../support/callers.ts";
import { matchEvents, type MatchedEvent } from "../../src/subscriptions/match.ts";
import type { ReaderSelector } from "../../src/subscriptions/eligibility.ts";
import type { Caller } from "../../src/kit/caller.ts";
import { definition, definitionsOf } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

const owner = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
const stranger = { ...owner, id: 8 };
const subscription = { resource: "orders", events: ["on_create", "on_update"], user: owner };
const event = { id: "1", resource: "orders", event: "on_create", owner_id: "7" } as const;
const nobody = (): boolean => false;
const anybody = (): boolean => true;

type Candidate = typeof subscription;

/** Returns the candidates that get each event, by their places. */
async function match(
  events: readonly MatchedEvent[],
  given: readonly Candidate[],
  isAdmin: (user: Caller) => boolean,
): Promise<readonly (readonly number[])[]> {
  const candidates = given.map((candidate, index) => ({ ...candidate, subscriptionId: index }));
  const resources = ["orders", "notes"].map((name) => definition({ name, fields: [], code: { isAdmin } }));
  const eligibility = eligibilityOf(definitionsOf(...resources));
  const selectors = new Map<string, ReaderSelector>();
  for (const { resource } of events)
    selectors.set(
      resource,
      await eligibility.readerSelectorOf(
        resource,
        events.filter((one) => one.resource === resource),
      ),
    );
  const found = matchEvents({ events, candidates, selectors });
  return found.map((group) => group.map(({ subscriptionId }) => subscriptionId));
}

describe("matchEvents", () => {
  const theirs = { ...subscription, user: stranger };
  const cases: readonly (readonly [string, boolean, MatchedEvent, Candidate, () => boolean])[] = [
    ["the owner of the record", true, event, subscription, nobody],
    ["another resource", false, event, { ...subscription, resource: "notes" }, anybody],
    ["a trigger that is not listed", false, { ...event, event: "on_delete" }, subscription, anybody],
    ["somebody else", false, event, theirs, nobody],
    ["an admin for the resource", true, event, theirs, anybody],
    ["an admin who is the owner", true, event, subscription, anybody],
  ];
  for (const [what, isMatch, given, candidate, isAdmin] of cases) {
    it(`${isMatch ? "lets" : "keeps"} the event ${isMatch ? "reach" : "from"} ${what}`, async () => {
      expect(await match([given], [candidate], isAdmin)).to.deep.equal([isMatch ? [0] : []]);
    });
  }

  it("answers each event in its place, with owners and admins by id", async () => {
    const admin = { ...owner, id: 9, isAdmin: true };
    const candidates = [subscription, { ...subscription, user: admin }, subscription, theirs];

    const found = await match(
      [
        event,
        { ...event, owner_id: "8" },
        { ...event, event: "on_delete" },
        event,
        { ...event, owner_id: "9" },
      ],
      candidates,
      (user) => user.isAdmin,
    );

    expect(found).to.deep.equal([[0, 1, 2], [1, 3], [], [0, 1, 2], [1]]);
  });

  it("asks once for each resource and user whether the user is an admin", async () => {
    const asked: number[] = [];
    const updated = { ...event, event: "on_update" } as const;
    await match(
      [event, updated, event, { ...event, resource: "notes" }],
      [theirs, theirs, { ...theirs, resource: "notes" }],
      ({ id }) => {
        asked.push(id);
        return false;
      },
    );

    expect(asked).to.deep.equal([8, 8]);
  });
});
