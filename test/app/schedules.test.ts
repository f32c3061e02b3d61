import { expect } from "chai";
import type { Config } from "../../src/config/load.ts";
import { createScheduleOf } from "../../src/app/schedules.ts";
import type { CodeModule } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

function scheduleOf(code: Readonly<Partial<Record<keyof CodeModule, () => unknown>>>, file = {}): unknown {
  const notes = definition({
    name: "notes",
    fields: [field("text", "String")],
    code: code as CodeModule,
    ...file,
  });
  const config: unknown = { webhooks: { maxAttempts: 10, backoffMs: [5_000] } };
  return createScheduleOf({ config: config as Config, definitions: definitionsOf(notes) })("notes");
}

function fail(): never {
  throw new Error("no");
}

describe("createScheduleOf", () => {
  it("uses the settings, then the keys of the file, then the results of the code", () => {
    const file = { webhookMaxAttempts: 4, webhookBackoff: [1, 0.5] };
    const code = { webhookMaxAttempts: () => 3, webhookBackoff: () => [0.25, 0] };

    expect(scheduleOf({})).to.deep.equal({ maxAttempts: 10, backoffMs: [5_000] });
    expect(scheduleOf({}, file)).to.deep.equal({ maxAttempts: 4, backoffMs: [1_000, 500] });
    expect(scheduleOf(code, file)).to.deep.equal({ maxAttempts: 3, backoffMs: [250, 0] });
    expect(scheduleOf({ webhookBackoff: () => undefined }, file)).to.deep.equal({
      maxAttempts: 4,
      backoffMs: [1_000, 500],
    });
  });

  for (const answer of [0, 1001, 1.5, Number.NaN, null, "many", [3]])
    it(`refuses ${JSON.stringify(answer)} (${typeof answer}) attempts of code`, () => {
      expect(() => scheduleOf({ webhookMaxAttempts: () => answer })).to.throw(
        "webhookMaxAttempts of the resource notes must answer a whole number from 1 to 1000",
      );
    });

  for (const answer of [[], 5, [-1], ["soon"], [Number.NaN], [31_536_001], null])
    it(`refuses ${JSON.stringify(answer)} as the waits of code, which would delay every delivery`, () => {
      expect(() => scheduleOf({ webhookBackoff: () => answer })).to.throw(
        "webhookBackoff of the resource notes must answer a list of at least one of (seconds, from 0 to 31536000)",
      );
    });

  it("names the resource whose code throws, or returns a promise", () => {
    expect(() => scheduleOf({ webhookBackoff: fail })).to.throw(
      "webhookBackoff of the resource notes failed",
    );
    expect(() => scheduleOf({ webhookMaxAttempts: () => Promise.reject(new Error("no")) })).to.throw(
      "webhookMaxAttempts of the resource notes failed",
    );
  });
});
