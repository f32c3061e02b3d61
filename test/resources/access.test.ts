import { makeCaller } from "../support/callers.ts";
import { expect } from "chai";
import { isAdminFor, mayTouch, ownerFilter, ownerValue } from "../../src/resources/access.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { definition, field } from "../support/definitions.ts";

const user = makeCaller({ id: 7, name: "Ada", email: "Ada@example.com", isAdmin: false });
const admin = makeCaller({ id: 1, name: "Root", email: "root@example.com", isAdmin: true });

const owned = (overrides: Partial<Definition> = {}): Definition =>
  definition({
    name: "orders",
    fields: [field("user_id", "Int"), field("big", "BigInt"), field("text", "String")],
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

  it("goes by the code module before the mapping file", () => {
    const resource = owned({ code: { isAdmin: ({ id }) => id === 7 } });

    expect([isAdminFor(resource, user), isAdminFor(resource, admin)]).to.deep.equal([true, false]);
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

describe("ownerFilter", () => {
  it("leaves everything to an admin", () => {
    expect(ownerFilter(owned(), admin)).to.equal(undefined);
  });

  it("leaves others their own records", () => {
    expect(ownerFilter(owned(), user)).to.deep.equal({ user_id: 7 });
  });

  it("leaves others nothing without an owner column", () => {
    const { ownerColumn: _, ...ownerless } = owned();

    expect([ownerFilter(ownerless, user), ownerFilter(ownerless, admin)]).to.deep.equal([
      "nothing",
      undefined,
    ]);
  });
});

describe("ownerValue", () => {
  it("has the type of the column", () => {
    const values = (["Int", "BigInt", "String"] as const).map((type) => ownerValue(field("x", type), user));

    expect(values).to.deep.equal([7, 7n, "7"]);
  });
});

describe("mayTouch", () => {
  for (const [column, own, foreign] of [
    ["user_id", 7, 8],
    ["big", 7n, 8n],
    ["text", "7", "07"],
  ] as const) {
    it(`lets the owner in by the column ${column}, and nobody else but an admin`, () => {
      const resource = owned({ ownerColumn: column });

      expect([
        mayTouch(resource, user, { [column]: own }),
        mayTouch(resource, user, { [column]: foreign }),
        mayTouch(resource, user, { [column]: null }),
        mayTouch(resource, admin, { [column]: foreign }),
      ]).to.deep.equal([true, false, false, true]);
    });
  }

  it("lets only admins in without an owner column", () => {
    const { ownerColumn: _, ...ownerless } = owned();

    expect([mayTouch(ownerless, user, { user_id: 7 }), mayTouch(ownerless, admin, {})]).to.deep.equal([
      false,
      true,
    ]);
  });
});
