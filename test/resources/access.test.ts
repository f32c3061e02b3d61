import { makeCaller } from "../support/callers.ts";
import { expect } from "chai";
import { allOf, always, never, type Condition } from "../../src/querying/condition.ts";
import { createAccessConditions, isAdminFor, isUnguarded, ownerValue } from "../../src/resources/access.ts";
import type { AccessOperation, AccessRule, Definition } from "../../src/mapping/definition.ts";
import type { Caller } from "../../src/kit/caller.ts";
import { definition, field, ownersOnly } from "../support/definitions.ts";

const user = makeCaller({ id: 7, name: "Ada", email: "Ada@example.com", isAdmin: false });
const admin = makeCaller({ id: 1, name: "Root", email: "root@example.com", isAdmin: true });

const owned = (overrides: Partial<Definition> = {}): Definition =>
  definition({
    name: "orders",
    fields: [
      field("user_id", "Int"),
      field("big", "BigInt"),
      field("text", "String"),
      field("tags", "String", { isList: true }),
    ],
    ownerColumn: "user_id",
    ...overrides,
  });

describe("isAdminFor", () => {
  for (const [what, rule, ofUser, ofAdmin] of [
    ["the flag", { kind: "flag" }, false, true],
    ["nobody", { kind: "nobody" }, false, false],
    ["a list of addresses, in any case", { kind: "emails", emails: ["ADA@example.com"] }, true, false],
    ["an empty list", { kind: "emails", emails: [] }, false, false],
  ] as const) {
    it(`goes by ${what}`, () => {
      const resource = owned({ isAdmin: rule });

      expect([isAdminFor(resource, user), isAdminFor(resource, admin)]).to.deep.equal([ofUser, ofAdmin]);
    });
  }

  it("does not match an admin's address with another letter", () => {
    const resource = owned({ isAdmin: { kind: "emails", emails: ["kate@example.com"] } });
    // The Kelvin sign, which JavaScript lowers to a k.
    const other = makeCaller({ id: 8, name: "Eve", email: "\u212Aate@example.com", isAdmin: false });

    expect(isAdminFor(resource, other)).to.equal(false);
  });

  it("uses the code module before the mapping file", () => {
    const resource = owned({ code: { isAdmin: ({ id }) => id === 7 } });

    expect([isAdminFor(resource, user), isAdminFor(resource, admin)]).to.deep.equal([true, false]);
  });

  it("keeps the user unchanged when the code module modifies it", () => {
    const caller = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
    const code = { isAdmin: (given: Caller) => Object.assign(given, { isAdmin: true }).isAdmin };

    expect(isAdminFor(owned({ code }), caller)).to.equal(true);
    expect(isAdminFor(owned(), caller)).to.equal(false);
  });

  it("throws with the resource's name when the code module does", () => {
    const resource = owned({
      code: {
        isAdmin: () => {
          throw new Error("oops");
        },
      },
    });

    expect(() => isAdminFor(resource, admin)).to.throw("isAdmin of the resource orders failed");
  });

  for (const [what, answer] of [
    ["a number", 1],
    ["nothing", undefined],
  ] as const) {
    it(`throws when the code module answers ${what}`, () => {
      const resource = owned({ code: { isAdmin: () => answer as never } });

      expect(() => isAdminFor(resource, user)).to.throw("must answer true or false");
    });
  }
});

describe("isUnguarded", () => {
  const rules: readonly (readonly [string, Partial<Definition>, boolean])[] = [
    ["nothing of access", {}, true],
    ["an owner", { ownerColumn: "user_id" }, false],
    ["a rule to read", { access: { ...ownersOnly, read: { kind: "admin" } } }, false],
    ["a rule to refer to it", { access: { ...ownersOnly, reference: { kind: "owner" } } }, false],
  ];
  for (const [what, changes, expected] of rules)
    it(`is ${expected} for a resource whose file has ${what}`, () => {
      const resource = definition({ name: "orders", fields: [field("user_id", "Int")], ...changes });

      expect(isUnguarded(resource)).to.equal(expected);
    });
});

describe("ownerValue", () => {
  it("has the type of the column", () => {
    const values = (["Int", "BigInt", "String"] as const).map((type) => ownerValue(field("x", type), user));

    expect(values).to.deep.equal([7, 7n, "7"]);
  });
});

const conditionFor = (resource: Definition, caller: Caller, operation: AccessOperation = "read"): Condition =>
  createAccessConditions(new Map([[resource.name, resource]])).of(resource, [operation], caller);
const withRead = (read: AccessRule): Definition => owned({ access: { ...ownersOnly, read } });

describe("createAccessConditions", () => {
  it("allows an admin everything, under any rule", () => {
    expect(conditionFor(withRead({ kind: "admin" }), admin)).to.equal(always);
  });

  for (const column of ["user_id", "big", "text"]) {
    it(`allows others their own records by ${column}`, () => {
      expect(conditionFor(owned({ ownerColumn: column }), user)).to.deep.include({
        kind: "compare",
        operator: "=",
        value: "7",
      });
    });
  }

  it("allows others nothing without an owner column", () => {
    const { ownerColumn: _, ...ownerless } = owned();

    expect(conditionFor(ownerless, user)).to.equal(never);
  });

  it("allows others all or nothing with everyone and admin", () => {
    expect([
      conditionFor(withRead({ kind: "everyone" }), user),
      conditionFor(withRead({ kind: "admin" }), user),
    ]).to.deep.equal([always, never]);
  });

  it("limits related records by their rules, also those behind others and required ones", () => {
    const target = owned();
    const access = createAccessConditions(new Map([[target.name, target]]));
    const [from, to] = [field("order_id", "Int"), field("id", "Int")];
    const link = { name: "order", isMany: false, isCertain: true, from, target, to };
    const related = (of: Condition): Condition => ({ kind: "related", link, of });
    const own = access.of(target, ["read"], user);

    const reached = access.withinReach({ kind: "not", of: related(related(always)) }, user);

    const behind = related(allOf([own, always]));
    expect(reached).to.deep.equal({ kind: "not", of: related(allOf([own, behind])) });
  });

  it("asks once when two operations have the same question", () => {
    const resource = owned();
    const access = createAccessConditions(new Map([[resource.name, resource]]));

    expect(access.of(resource, ["read", "update"], user).kind).to.equal("compare");
  });

  for (const [what, where, caller, values] of [
    ["the id", { user_id: "$user.id" }, user, ["7"]],
    ["the e-mail address", { text: "$user.email" }, user, ["Ada@example.com"]],
    ["a claim", { text: "$user.claims.team" }, { ...user, claims: { team: "red" } }, ["red"]],
    ["a claim that is missing", { text: "$user.claims.team" }, user, [null]],
    ["a claim of another type", { user_id: "$user.claims.n" }, { ...user, claims: { n: "x" } }, [null]],
    ["a claim of the prototype", { text: "$user.claims.constructor" }, { ...user, claims: {} }, [null]],
    [
      "a list of claims",
      { user_id: { in: "$user.claims.ids" } },
      { ...user, claims: { ids: [1, "2", "x", {}] } },
      ["1", "2", null, null],
    ],
    ["an empty list", { user_id: { in: "$user.claims.ids" } }, { ...user, claims: { ids: [] } }, [null]],
    ["a list of one, for one value", { text: "$user.claims.t" }, { ...user, claims: { t: ["a"] } }, ["a"]],
    ["a list, for one value", { text: "$user.claims.t" }, { ...user, claims: { t: ["a", "b"] } }, [null]],
    [
      "a list, for some",
      { tags: { hasSome: "$user.claims.t" } },
      { ...user, claims: { t: ["a", "b"] } },
      ["a", "b"],
    ],
    [
      "a list, for one of a list",
      { tags: { has: "$user.claims.t" } },
      { ...user, claims: { t: ["a", "b"] } },
      [null],
    ],
  ] as const) {
    it(`puts ${what} into a filter`, () => {
      const condition = conditionFor(withRead({ kind: "filter", where }), caller);

      const found = "values" in condition ? condition.values : [(condition as { value: unknown }).value];
      expect(found).to.deep.equal(values);
    });
  }

  for (const [what, where] of [
    ["a NOT", { NOT: { text: "$user.claims.team" } }],
    ["a NOT in a NOT", { NOT: { OR: [{ user_id: 7 }, { NOT: { text: "$user.claims.team" } }] } }],
    ["a NOT around what is not in a list", { NOT: { text: { notIn: "$user.claims.teams" } } }],
  ] as const) {
    it(`allows nothing by ${what} to a user without the claim`, () => {
      expect(conditionFor(withRead({ kind: "filter", where }), user)).to.equal(never);
    });
  }

  it("refuses a filter that SQL cannot decide, with the place in the file", () => {
    const resource = withRead({ kind: "filter", where: { user_id: "seven" } });

    expect(() => createAccessConditions(new Map([["orders", resource]]))).to.throw(/access/);
  });
});
