import { expect } from "chai";
import { makeCaller } from "../support/callers.ts";
import { matchEvents } from "../../src/subscriptions/match.ts";
import type { Caller } from "../../src/kit/caller.ts";

const owner = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
const stranger = { ...owner, id: 8 };
const subscription = { resource: "orders", events: ["on_create", "on_update"], user: owner };
const event = { resource: "orders", event: "on_create", owner_id: "7" } as const;
const nobody = (): boolean => false;
const anybody = (): boolean => true;

type Candidate = typeof subscription;
type Event = Parameters<typeof matchEvents>[0]["events"][number];

/** Which of the candidates get each event, by their places. */
function match(
  events: readonly Event[],
  given: readonly Candidate[],
  isAdminFor: (resource: string, user: Caller) => boolean,
): readonly (readonly number[])[] {
  const candidates = given.map((candidate, index) => ({ ...candidate, subscriptionId: index }));
  const found = matchEvents({ events, candidates, isAdminFor });
  return found.map((group) => group.map(({ subscriptionId }) => subscriptionId));
}

describe("matchEvents", () => {
  const theirs = { ...subscription, user: stranger };
  const cases: readonly (readonly [string, boolean, Event, Candidate, () => boolean])[] = [
    ["the owner of the record", true, event, subscription, nobody],
    ["another resource", false, event, { ...subscription, resource: "notes" }, anybody],
    ["a trigger that is not listed", false, { ...event, event: "on_delete" }, subscription, anybody],
    ["somebody else", false, event, theirs, nobody],
    ["a record without an owner", false, { ...event, owner_id: null }, subscription, nobody],
    ["an owner id that only looks alike", false, { ...event, owner_id: "07" }, subscription, nobody],
    ["an admin for the resource", true, event, theirs, anybody],
    ["an admin, when nobody owns the record", true, { ...event, owner_id: null }, theirs, anybody],
    ["an admin who is the owner", true, event, subscription, anybody],
  ];
  for (const [what, isMatch, given, candidate, isAdminFor] of cases) {
    it(`${isMatch ? "lets" : "keeps"} the event ${isMatch ? "reach" : "from"} ${what}`, () => {
      expect(match([given], [candidate], isAdminFor)).to.deep.equal([isMatch ? [0] : []]);
    });
  }

  it("answers each event in its place, with owners and admins by id", () => {
    const admin = { ...owner, id: 9, isAdmin: true };
    const candidates = [subscription, { ...subscription, user: admin }, subscription, theirs];

    const found = match(
      [
        event,
        { ...event, owner_id: "8" },
        { ...event, event: "on_delete" },
        event,
        { ...event, owner_id: "9" },
      ],
      candidates,
      (_, user) => user.isAdmin,
    );

    expect(found).to.deep.equal([[0, 1, 2], [1, 3], [], [0, 1, 2], [1]]);
  });

  it("asks once for each resource and user whether the user is an admin", () => {
    const asked: [string, Caller][] = [];
    match([event, event], [theirs, theirs, { ...theirs, resource: "notes" }], (resource, user) => {
      asked.push([resource, user]);
      return false;
    });

    expect(asked).to.deep.equal([
      ["orders", stranger],
      ["notes", stranger],
    ]);
  });
});
