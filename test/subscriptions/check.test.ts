import { expect } from "chai";
import type { Trigger } from "../../src/mapping/definition.ts";
import {
  checkNewSubscription,
  checkSubscriptionChanges,
  type SubscriptionRules,
} from "../../src/subscriptions/check.ts";

const rules: SubscriptionRules = {
  triggersOf: (resource) =>
    new Map<string, readonly Trigger[]>([
      ["orders", ["on_create", "on_update"]],
      ["notes", ["on_delete"]],
    ]).get(resource),
  resourceNames: ["orders", "notes"],
  filterFaults: (filter) => new Map(filter === "wrong" ? [["amount.gte", "It is wrong."]] : []),
  refusalOfResource: () => undefined,
  refusalOfUrl: (url) =>
    url.includes("10.0.0.1") ? "The url must not point to a private address." : undefined,
};

const good = { url: "https://example.com/hook", resource: "orders", events: ["on_create"] };

const refusedEvent = (index: number): string =>
  `The selected events.${index} is invalid. The events of orders are on_create, on_update.`;

/** A field of the body, a value, and the resulting errors; none when it is accepted. */
type Case = readonly [string, unknown, Record<string, readonly string[]>];

const cases: readonly Case[] = [
  ["url", undefined, { url: ["The url field is required."] }],
  ["url", null, { url: ["The url field is required."] }],
  ["url", "  ", { url: ["The url field is required."] }],
  ["url", 5, { url: ["The url field must be a string."] }],
  ["url", ["https://example.com"], { url: ["The url field must be a string."] }],
  ["url", "example.com/hook", { url: ["The url field must be a valid URL."] }],
  ["url", "ftp://example.com/hook", { url: ["The url field must be a valid URL."] }],
  ["url", "https:example.com", { url: ["The url field must be a valid URL."] }],
  ["url", "https://", { url: ["The url field must be a valid URL."] }],
  ["url", "https://exa mple.com", { url: ["The url field must be a valid URL."] }],
  ["url", "https://example.com/\nhook", { url: ["The url field must be a valid URL."] }],
  ["url", "https://example.com/\u0000", { url: ["The url field must be a valid URL."] }],
  ["url", "https://example.com:99999/", { url: ["The url field must be a valid URL."] }],
  ["url", "https://10.0.0.1/hook", { url: ["The url must not point to a private address."] }],
  ["url", `https://example.com/${"a".repeat(2028)}`, {}],
  [
    "url",
    `https://example.com/${"a".repeat(2029)}`,
    { url: ["The url field must not be greater than 2048 characters."] },
  ],
  ["url", "HTTP://EXAMPLE.com", {}],
  ["secret", "x".repeat(24), {}],
  ["secret", null, {}],
  ["secret", "x".repeat(23), { secret: ["The secret field must be at least 24 characters."] }],
  ["secret", " ", { secret: ["The secret field must be at least 24 characters."] }],
  ["secret", "x".repeat(129), { secret: ["The secret field must not be greater than 128 characters."] }],
  [
    "secret",
    `${"x".repeat(24)} x`,
    { secret: ["The secret field must have visible ASCII characters only, without blanks."] },
  ],
  ["secret", 5, { secret: ["The secret field must be a string."] }],
  ["filter", null, {}],
  ["filter", { amount: { gte: 1 } }, {}],
  ["filter", "wrong", { "filter.amount.gte": ["It is wrong."] }],
  [
    "filter",
    { name: "x".repeat(16_400) },
    { filter: ["The filter field must not have more than 16384 characters."] },
  ],
  ["filter", { amount: [1e-300, 0, -2.5e-7] }, {}],
  ["filter", { amount: Array.from({ length: 8_000 }, () => 0) }, {}],
  [
    "filter",
    { amount: Array.from({ length: 60 }, () => 1e-300) },
    { filter: ["The filter field must not have more than 16384 characters."] },
  ],
  ["rate_limit", 0.1, {}],
  ["rate_limit", 1000, {}],
  ["rate_limit", null, {}],
  ["rate_limit", 0.09, { rate_limit: ["The rate limit field must be between 0.1 and 1000."] }],
  ["rate_limit", 1001, { rate_limit: ["The rate limit field must be between 0.1 and 1000."] }],
  ["rate_limit", "fast", { rate_limit: ["The rate limit field must be a number."] }],
  ["events", undefined, { events: ["The events field is required."] }],
  ["events", null, { events: ["The events field is required."] }],
  ["events", [], { events: ["The events field is required."] }],
  ["events", "on_create", { events: ["The events field must be an array."] }],
  ["events", { 0: "on_create" }, { events: ["The events field must be an array."] }],
  ["events", ["on_create", "on_update"], {}],
  ["events", ["on_create", "on_delete"], { "events.1": [refusedEvent(1)] }],
  ["events", ["created"], { "events.0": [refusedEvent(0)] }],
  [
    "events",
    [null, 7, ["on_create"]],
    {
      "events.0": [refusedEvent(0)],
      "events.1": [refusedEvent(1)],
      "events.2": [refusedEvent(2)],
    },
  ],
  ["events", ["on_create\u0000"], { "events.0": [refusedEvent(0)] }],
  [
    "events",
    ["on_create", "on_create"],
    {
      "events.0": ["The events.0 field has a duplicate value."],
      "events.1": ["The events.1 field has a duplicate value."],
    },
  ],
  [
    "events",
    Array.from({ length: 21 }, () => "x"),
    { events: ["The events field must not have more than 20 items."] },
  ],
  ["is_active", true, {}],
  ["is_active", "0", {}],
  ["is_active", null, { is_active: ["The is active field must be true or false."] }],
  ["is_active", "yes", { is_active: ["The is active field must be true or false."] }],
  ["is_active", 2, { is_active: ["The is active field must be true or false."] }],
  ["description", null, {}],
  ["description", "", {}],
  ["description", "é".repeat(255), {}],
  ["description", "😀".repeat(255), {}],
  [
    "description",
    "a".repeat(256),
    { description: ["The description field must not be greater than 255 characters."] },
  ],
  ["description", 5, { description: ["The description field must be a string."] }],
  ["description", { a: 1 }, { description: ["The description field must be a string."] }],
  ["description", "a\u0000b", { description: ["The description field must not contain null characters."] }],
];

/** Returns the first value of a field that is accepted, or refused. */
function firstOf(name: string, isRefused: boolean): readonly Case[] {
  return cases
    .filter(([field, value]) => field === name && value !== undefined)
    .filter(([, , errors]) => Object.keys(errors).length > 0 === isRefused)
    .slice(0, 1);
}

function titleOf([field, value, errors]: Case): string {
  const text = JSON.stringify(value) ?? "nothing";
  const short = text.length > 60 ? `${text.slice(0, 30)}... (${text.length} characters of JSON)` : text;
  return `${Object.keys(errors).length === 0 ? "accepts" : "refuses"} ${short} as ${field}`;
}

describe("checkNewSubscription", () => {
  it("answers the values, with the defaults filled in", async () => {
    expect(await checkNewSubscription({ ...good, url: " https://example.com/hook " }, rules)).to.deep.equal({
      kind: "valid",
      value: {
        ...good,
        filter: null,
        headers: new Map(),
        rateLimit: null,
        secret: undefined,
        isActive: true,
        description: null,
      },
    });
  });

  it("refuses unknown keys, and suggests names", async () => {
    const checked = await checkNewSubscription({ ...good, evnts: [], nonsense: "sec_x" }, rules);

    expect(checked).to.deep.equal({
      kind: "invalid",
      errors: {
        evnts: ["There is no field evnts; did you mean events?"],
        nonsense: [
          "There is no field nonsense; expected one of url, resource, events, filter, headers, rate_limit, secret, is_active, description.",
        ],
      },
    });
  });

  it("names twenty unknown keys at most, `__proto__` among them", async () => {
    const unknown = JSON.parse(
      `{"__proto__": 1, ${Array.from({ length: 50 }, (_, n) => `"key${n}": 1`).join()}}`,
    );
    const checked = await checkNewSubscription({ ...good, ...unknown, ["__proto__"]: 1 }, rules);

    expect(checked.kind === "invalid" ? Object.keys(checked.errors) : [])
      .to.have.length(20)
      .and.include("__proto__");
  });

  it("shortens long unknown keys", async () => {
    const checked = await checkNewSubscription({ ...good, ["k".repeat(900_000)]: 1 }, rules);

    expect(JSON.stringify(checked)).to.have.length.below(600);
  });

  it("names every required field of an empty body", async () => {
    expect(await checkNewSubscription({}, rules)).to.deep.equal({
      kind: "invalid",
      errors: {
        url: ["The url field is required."],
        resource: ["The resource field is required."],
        events: ["The events field is required."],
      },
    });
  });

  for (const item of cases) {
    it(titleOf(item), async () => {
      const [field, value, errors] = item;
      const checked = await checkNewSubscription({ ...good, [field]: value }, rules);

      expect(checked.kind === "invalid" ? checked.errors : {}).to.deep.equal(errors);
    });
  }

  for (const [value, message] of [
    [null, "The resource field is required."],
    ["", "The resource field is required."],
    [5, "The resource field must be a string."],
    ["nothing", "The selected resource is invalid."],
    ["order", "The selected resource is invalid; did you mean orders?"],
    ["orders\u0000", "The selected resource is invalid; did you mean orders?"],
    ["__proto__", "The selected resource is invalid."],
  ] as const) {
    it(`refuses ${JSON.stringify(value)} as resource, without messages on the events`, async () => {
      const checked = await checkNewSubscription({ ...good, resource: value }, rules);

      expect(checked).to.deep.equal({ kind: "invalid", errors: { resource: [message] } });
    });
  }

  for (const [value, isActive] of [
    [true, true],
    [1, true],
    ["1", true],
    [false, false],
    [0, false],
    ["0", false],
  ] as const) {
    it(`reads ${JSON.stringify(value)} as is_active ${isActive}`, async () => {
      const checked = await checkNewSubscription({ ...good, is_active: value }, rules);

      expect(checked.kind === "valid" && checked.value.isActive).to.equal(isActive);
    });
  }
});

describe("checkSubscriptionChanges", () => {
  const orders = { resource: "orders", headerNames: ["X-Key"], events: ["on_create"], filter: null };

  it("answers nothing for an empty body", async () => {
    expect(await checkSubscriptionChanges({}, orders, rules)).to.deep.equal({ kind: "valid", value: {} });
  });

  it("answers only keys of the body", async () => {
    const checked = await checkSubscriptionChanges({ is_active: false, description: "" }, orders, rules);

    expect(checked).to.deep.equal({ kind: "valid", value: { isActive: false, description: null } });
  });

  // The rules are those of a creation, as the first accepted and the first refused value of each
  // field show.
  const names = ["url", "events", "is_active", "description"];
  for (const item of names.flatMap((name) => [...firstOf(name, false), ...firstOf(name, true)])) {
    it(titleOf(item), async () => {
      const [field, value, errors] = item;
      const checked = await checkSubscriptionChanges({ [field]: value }, orders, rules);

      expect(checked.kind === "invalid" ? checked.errors : {}).to.deep.equal(errors);
    });
  }

  it("reads a blank rate limit as none", async () => {
    for (const rate_limit of ["", " ", null])
      expect(await checkSubscriptionChanges({ rate_limit }, orders, rules)).to.deep.equal({
        kind: "valid",
        value: { rateLimit: null },
      });
  });

  it("refuses another resource", async () => {
    expect(await checkSubscriptionChanges({ resource: "notes" }, orders, rules)).to.deep.equal({
      kind: "invalid",
      errors: { resource: ["The resource field is prohibited."] },
    });
  });

  it("accepts an answer that is sent back whole", async () => {
    const read = {
      id: 9,
      user_id: 7,
      headers: { "X-Key": "****" },
      rate_limit: null,
      disabled_at: null,
      disabled_reason: null,
      failing_since: null,
      last_success_at: null,
      last_attempt_at: null,
      masked_secret: "sec_****abcd",
      previous_secret_until: null,
      created_at: "x",
      updated_at: "x",
    };

    expect(
      await checkSubscriptionChanges({ ...read, ...good, resource: "orders" }, orders, rules),
    ).to.deep.equal({
      kind: "valid",
      value: {
        url: good.url,
        events: good.events,
        headers: new Map([["X-Key", "keep"]]),
        rateLimit: null,
      },
    });
  });

  it("refuses unknown keys, a secret among them", async () => {
    const checked = await checkSubscriptionChanges({ nonsense: 1, secret: "sec_x" }, orders, rules);

    expect(checked.kind === "invalid" ? Object.keys(checked.errors) : []).to.have.members([
      "nonsense",
      "secret",
    ]);
  });

  it("accepts no event of a resource that is no longer registered", async () => {
    expect(
      await checkSubscriptionChanges({ events: ["on_create"] }, { ...orders, resource: "gone" }, rules),
    ).to.deep.equal({
      kind: "invalid",
      errors: {
        "events.0": [
          "The selected events.0 is invalid. The resource gone is not in the mapping files any more.",
        ],
      },
    });
  });
});
