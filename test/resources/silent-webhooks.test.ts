import { expect } from "chai";
import type { Access, AccessRule, Definition, Definitions } from "../../src/mapping/definition.ts";
import { refusalOfWebhook, silentWebhooks } from "../../src/resources/silent-webhooks.ts";
import { makeCaller } from "../support/callers.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";

const user = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
const admin = { ...user, id: 8, isAdmin: true };
const guarded: Access = { ...ownersOnly, reference: { kind: "owner" } };
const filter = (where: Readonly<Record<string, unknown>>): Access => ({
  ...guarded,
  read: { kind: "filter", where } satisfies AccessRule,
});

const orders = (more: Partial<Definition>): Definitions =>
  definitionsOf(
    definition({
      name: "orders",
      fields: [field("user_id", "Int"), field("team", "String"), field("teams", "String", { isList: true })],
      ...more,
    }),
  );

const cases: readonly (readonly [string, Partial<Definition>, RegExp | undefined, RegExp | undefined])[] = [
  ["records with owners", { access: guarded, ownerColumn: "user_id" }, undefined, undefined],
  [
    "records that everyone reads",
    { access: { ...guarded, read: { kind: "everyone" } } },
    undefined,
    undefined,
  ],
  [
    "read: admin, which says it",
    { access: { ...guarded, read: { kind: "admin" } } },
    /^Only admins read/,
    undefined,
  ],
  [
    "read: admin where no user is one",
    { access: { ...guarded, read: { kind: "admin" } }, isAdmin: { kind: "nobody" } },
    /^Only admins read/,
    /no user can get webhooks/,
  ],
  ["records without owners", { access: guarded }, /which has no ownerColumn/, /only admins get webhooks/],
  ["a file from before access", { access: ownersOnly }, undefined, /only admins get webhooks/],
  [
    "a claim that decides",
    { access: filter({ team: "$user.claims.team" }) },
    /claim of a JWT/,
    /a claim of a JWT decides/,
  ],
  [
    "a list of claims that decides",
    { access: filter({ teams: { hasSome: "$user.claims.teams" } }) },
    /claim of a JWT/,
    /a claim of a JWT decides/,
  ],
  [
    "a claim in a list that decides for some",
    { access: filter({ teams: { hasSome: ["all", "$user.claims.team"] } }) },
    undefined,
    /the rest of the filter/,
  ],
  [
    "a claim that decides for some",
    { access: filter({ OR: [{ team: { in: "$user.claims.teams" } }, { user_id: "$user.id" }] }) },
    undefined,
    /the rest of the filter/,
  ],
  ["no triggers", { access: guarded, triggers: [] }, /no ownerColumn/, undefined],
];

describe("webhooks that can never fire", () => {
  for (const [what, more, refusal, warning] of cases) {
    it(`are refused for ${refusal === undefined ? "nobody" : "users"} with ${what}`, () => {
      const definitions = orders(more);
      const refused = (caller: typeof user): string | undefined =>
        refusalOfWebhook(definitions.get("orders"), definitions, caller);

      if (refusal === undefined) expect(refused(user)).to.equal(undefined);
      else
        expect(refused(user))
          .to.match(refusal)
          .and.match(/would never fire\.$/);
      if (more.isAdmin === undefined) expect(refused(admin)).to.equal(undefined);
      const warnings = silentWebhooks(definitions);
      expect(warnings).to.have.length(warning === undefined ? 0 : 1);
      if (warning !== undefined) expect(warnings[0]).to.match(warning);
    });
  }
});
