import { expect } from "chai";
import { matches } from "../../src/subscriptions/match.ts";
import type { Caller } from "../../src/users/caller.ts";

const subscription = { resource: "orders", events: ["on_create", "on_update"], isActive: true };
const event = { resource: "orders", event: "on_create", owner_id: "7" } as const;
const owner = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, isDisabled: false };
const stranger = { ...owner, id: 8 };
const nobody = (): boolean => false;

describe("matches", () => {
  const cases: readonly (readonly [string, boolean, boolean])[] = [
    ["the owner of the record", matches(subscription, event, owner, nobody), true],
    ["an inactive subscription", matches({ ...subscription, isActive: false }, event, owner, nobody), false],
    ["another resource", matches({ ...subscription, resource: "notes" }, event, owner, nobody), false],
    [
      "a trigger that is not listed",
      matches(subscription, { ...event, event: "on_delete" }, owner, nobody),
      false,
    ],
    ["a disabled owner", matches(subscription, event, { ...owner, isDisabled: true }, nobody), false],
    ["somebody else", matches(subscription, event, stranger, nobody), false],
    ["a record without an owner", matches(subscription, { ...event, owner_id: null }, owner, nobody), false],
    [
      "an owner id that only looks alike",
      matches(subscription, { ...event, owner_id: "07" }, owner, nobody),
      false,
    ],
    ["an admin for the resource", matches(subscription, event, stranger, () => true), true],
    ["a disabled admin", matches(subscription, event, { ...stranger, isDisabled: true }, () => true), false],
    [
      "an admin, when nobody owns the record",
      matches(subscription, { ...event, owner_id: null }, stranger, () => true),
      true,
    ],
  ];
  for (const [what, answer, expected] of cases) {
    it(`${expected ? "lets" : "keeps"} the event ${expected ? "reach" : "from"} ${what}`, () => {
      expect(answer).to.equal(expected);
    });
  }

  it("asks whether the user is an admin for the event's own resource", () => {
    const asked: [string, Caller][] = [];
    matches(subscription, event, stranger, (resource, user) => {
      asked.push([resource, user]);
      return false;
    });

    expect(asked).to.deep.equal([["orders", stranger]]);
  });
});
