import { expect } from "chai";
import { createFairBudget } from "../../src/subscriptions/fair-budget.ts";
import { filterAnswers, type Filtered } from "../../src/subscriptions/filter-answers.ts";
import type { Steps } from "../../src/querying/judged-record.ts";
import { createWebhookFilters } from "../../src/subscriptions/filters.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

interface Webhook extends Filtered {
  readonly name: string;
}

const fields = [
  field("status", "String"),
  field("text", "String"),
  field("tags", "Int", { isList: true }),
  field("price", "Decimal", { isOptional: true }),
  field("meta", "Json", { isOptional: true }),
];
const notes = definition({ name: "notes", fields });

function webhook(name: string, filter: unknown, userId = 1): Webhook {
  return { name, filter: filter === null ? null : JSON.stringify(filter), user: { id: userId } };
}

/** Returns the maximum of a user's webhooks, each with another filter. */
function fifty(filterOf: (index: number) => unknown): readonly Webhook[] {
  return Array.from({ length: 50 }, (_, index) => webhook(`w${index}`, filterOf(index)));
}

const fiftyTexts = (index: number): unknown => ({
  or: Array.from({ length: 50 }, (_, part) => ({ text: { contains: `é ${index} ${part}` } })),
});

function in60000Steps(_event: unknown, _filter: string, steps: Steps): boolean {
  steps.left -= 60_000;
  return false;
}

/** Returns the webhooks that one record passes to, and the lines of the log. */
async function pass(
  data: object,
  webhooks: readonly Webhook[],
): Promise<{ readonly passed: readonly string[]; readonly lines: readonly Record<string, unknown>[] }> {
  const lines: Record<string, unknown>[] = [];
  const filters = createWebhookFilters({
    definitions: definitionsOf(notes),
    log: { warn: (line: Record<string, unknown>) => void lines.push(line) },
  });
  const bytes = Buffer.from(JSON.stringify({ status: "open", text: "", tags: [], ...data }));
  const [passed = []] = await filters.passing([{ resource: "notes", data: bytes }], [webhooks]);
  return { passed: passed.map(({ name }) => name), lines };
}

describe("passing of WebhookFilters", () => {
  it("passes an event that cannot be judged, and logs the reason", async () => {
    const unfit = webhook("unfit", { gone: "x" });
    const broken = { ...webhook("broken", null), filter: "{" };

    const { passed, lines } = await pass({}, [unfit, broken, webhook("other", { status: "shut" })]);

    expect(passed).to.deep.equal(["unfit", "broken"]);
    expect(lines.map(({ event }) => event)).to.deep.equal(["webhook.filter_unfit", "webhook.filter_failed"]);
  });

  it("lowers a text once for all filters of an event: 50 search 100,000 letters", async () => {
    const text = "É".repeat(100_000);

    const { passed, lines } = await pass(
      { text },
      fifty((index) => ({ text: { contains: `é${index}` } })),
    );

    expect([passed, lines]).to.deep.equal([[], []]);
  });

  for (const [what, data, filterOf] of [
    ["50 texts in 500,000 letters", { text: "É".repeat(500_000) }, fiftyTexts],
    [
      "a part of 15,000 letters that nearly fits everywhere",
      { text: "a".repeat(900_000) },
      (index: number) => ({ text: { contains: `${"a".repeat(8_000)}b${"a".repeat(7_000 + index)}` } }),
    ],
    [
      "one of 100 numbers in a list of 200,000",
      { tags: Array.from({ length: 200_000 }, () => 1) },
      (index: number) => ({ tags: { has_any: Array.from({ length: 100 }, (_, value) => -value - index) } }),
    ],
    [
      "the text of 100,000 objects",
      { meta: { of: Array.from({ length: 100_000 }, () => ({})) } },
      (index: number) => ({ "meta.of": `x${index}` }),
    ],
    [
      "a number of a million digits",
      { price: "1".repeat(1_000_000) },
      (index: number) => ({ price: { lt: index } }),
    ],
  ] as const) {
    it(`passes the event to webhooks that search for ${what}, and counts them in one line`, async () => {
      const { passed, lines } = await pass(data, fifty(filterOf));

      expect(passed).to.include("w49");
      expect(lines).to.deep.equal([
        { event: "webhook.filter_costly", passed: passed.length, resources: ["notes"], userIds: ["1"] },
      ]);
    });
  }

  it("judges the filters of other users, and the cheap ones of the same user", async () => {
    const { passed } = await pass({ text: "é".repeat(600_000) }, [
      ...fifty(fiftyTexts),
      webhook("paid", { status: "paid" }),
      webhook("open", { status: "open" }),
      webhook("all", null),
      webhook("theirs", { text: { contains: "x" } }, 2),
    ]);

    expect(passed).to.have.length(52);
    expect(passed).to.include.members(["open", "all"]);
    expect(passed).not.to.include.members(["paid"]);
    expect(passed).not.to.include.members(["theirs"]);
  });

  it("decides by the conditions that can be judged", async () => {
    const costly = { text: { contains: "x" } };
    const { passed, lines } = await pass({ text: "é".repeat(2_000_000) }, [
      webhook("neither", { or: [costly, { status: "paid" }] }),
      webhook("one", { or: [costly, { status: "open" }] }),
      webhook("both", { and: [costly, { status: "open" }] }),
      webhook("false", { and: [costly, { status: "paid" }] }),
      webhook("not", { not: { and: [costly, { status: "open" }] } }),
      webhook("nor", { not: { or: [costly, { status: "open" }] } }),
      webhook("start", { text: { starts_with: "x" } }),
      webhook("end", { text: { ends_with: "É" } }),
    ]);

    expect(passed).to.deep.equal(["neither", "one", "both", "not", "end"]);
    expect(lines.map(({ passed: count }) => count)).to.deep.equal([3]);
  });
});

describe("filterAnswers", () => {
  for (const [what, budget, mostJudged] of [
    ["without a budget", undefined, 2],
    // Each call judges one filter at least.
    ["within a budget", { left: () => Infinity, spend: () => undefined }, 3],
  ] as const)
    it(`lets the process do other work between filters ${what}, and shares the time with other calls`, async () => {
      let turn = 0;
      let isOver = false;
      const count = (): void => {
        turn += 1;
        if (!isOver) setImmediate(count);
      };
      count();
      const judgedIn: number[] = [];
      const judge = (): boolean => {
        const endsAt = performance.now() + 6;
        while (performance.now() < endsAt);
        judgedIn.push(turn);
        return false;
      };
      const own = fifty((index) => ({ status: String(index) })).slice(0, 10);
      const options = { judge, budget, log: { warn: () => undefined } };
      const run = (): Promise<unknown> => filterAnswers([{ resource: "notes", data: {} }], [own], options);

      await Promise.all([run(), run()]);
      isOver = true;

      expect(judgedIn).to.have.length(20);
      const most = Math.max(...judgedIn.map((one) => judgedIn.filter((other) => other === one).length));
      expect(most).to.be.at.most(mostJudged);
    });

  it("passes the events for whose filters the user's budget has no steps left, and counts them", async () => {
    let nowMs = 0;
    const lines: Record<string, unknown>[] = [];
    const budget = createFairBudget({ perSecond: 1_000_000, burst: 100_000, now: () => nowMs });
    const own = [
      ...["a", "b", "c"].map((name) => webhook(name, { status: name })),
      webhook("theirs", { status: "d" }, 2),
    ];
    const passing = async (): Promise<readonly string[]> => {
      const answers = await filterAnswers([{ resource: "notes", data: {} }], [own], {
        judge: in60000Steps,
        budget,
        log: { warn: (line: Record<string, unknown>) => void lines.push(line) },
      });
      return answers.flat().map(({ name }) => name);
    };

    expect(await passing()).to.deep.equal(["c"]);
    expect(await passing()).to.deep.equal(["a", "b", "c"]);
    // Both get 60,000 steps: user 1 owes 60,000 again, user 2 owes 60,000.
    nowMs += 120;
    expect(await passing()).to.deep.equal(["b", "c"]);
    expect(lines.map(({ passed, userIds }) => [passed, userIds])).to.deep.equal([
      [1, ["1"]],
      [3, ["1"]],
      [2, ["1"]],
    ]);
  });

  it("takes the steps of a filter without a verdict from the budget", async () => {
    const budget = createFairBudget({ perSecond: 0, burst: 100_000, now: () => 0 });
    let judgements = 0;
    const judge = (): undefined => {
      judgements += 1;
    };

    await filterAnswers([{ resource: "notes", data: {} }], [fifty((index) => ({ status: String(index) }))], {
      judge,
      budget,
      log: { warn: () => undefined },
    });

    expect(judgements).to.equal(5);
  });

  it("parses a record once, and only for a filter with steps left", async () => {
    const data = Buffer.from('{"status":"open"}');
    const records = new Set<unknown>();
    const judge = ({ record }: { readonly record: unknown }): boolean => records.add(record).size < 0;
    const webhooks = [webhook("a", { status: "a" }), webhook("b", { status: "b" })];
    const run = async (perEvent: number, bytes: Uint8Array): Promise<readonly Webhook[]> => {
      const budget = createFairBudget({ perSecond: 0, burst: perEvent, now: () => 0 });
      const options = { judge, budget, log: { warn: () => undefined } };
      return (await filterAnswers([{ resource: "notes", data: bytes }], [webhooks], options)).flat();
    };

    expect(await run(20_000, data)).to.deep.equal([]);
    expect(records.size).to.equal(1);
    expect(await run(19_999, Buffer.from("no JSON"))).to.deep.equal(webhooks);
  });

  it("reads an event when its turn has come", async () => {
    const asked: string[] = [];
    const events = function* (): Iterable<{ readonly resource: string }> {
      for (const resource of ["a", "b"]) {
        asked.push(resource);
        yield { resource };
      }
    };

    await filterAnswers(
      events(),
      [1, 2].map(() => [webhook("w", { status: "open" })]),
      { judge: ({ resource }) => asked.push(`judged ${resource}`) > 0, log: { warn: () => undefined } },
    );

    expect(asked).to.deep.equal(["a", "judged a", "b", "judged b"]);
  });
});
