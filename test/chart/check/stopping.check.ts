import { expect } from "chai";
import type { Config } from "../../../src/config/load.ts";
import { finishLimitMs } from "../../../src/app/generations.ts";
import { podOf, render } from "./chart.ts";

/** closeLimitMs of src/app/run.ts. */
const closeLimitMs = 5_000;
const graceOf = (component: string, values: object): number =>
  podOf(render({ values }), component).spec.terminationGracePeriodSeconds * 1_000;
const config = (timeoutMs: number): Config => ({ webhooks: { timeoutMs } }) as Config;

describe("the grace period", () => {
  for (const timeout of [0.5, 10, 30, 120.5, 1000]) {
    it(`of a dispatcher outlasts its own limits with attempts of ${timeout} s`, () => {
      const grace = graceOf("dispatcher", { config: { settings: { webhooks: { timeout } } } });

      expect(grace).to.be.greaterThan(finishLimitMs("dispatcher", config(timeout * 1_000)) + closeLimitMs);
    });
  }

  for (const preStopSeconds of [0, 10, 60]) {
    it(`of the API outlasts ${preStopSeconds} s of further serving and its own limits`, () => {
      const values = { api: { preStopSeconds } };
      const grace = graceOf("api", values);

      expect(grace).to.be.greaterThan(
        preStopSeconds * 1_000 + finishLimitMs("api", config(30_000)) + closeLimitMs,
      );
      const command = podOf(render({ values }), "api").container.lifecycle?.preStop.exec.command;
      expect(command).to.deep.equal(preStopSeconds === 0 ? undefined : ["sleep", String(preStopSeconds)]);
    });
  }
});
