import { expect } from "chai";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { find, promtool, render } from "./chart.ts";

const namespace = "team";
const api = `namespace="${namespace}", job="release-svc-api-metrics", pod="api-1"`;
const dispatcher = `namespace="${namespace}", job="release-svc-dispatcher-metrics", pod="dispatcher-1"`;
const elsewhere = `namespace="other", job="release-svc-dispatcher-metrics", pod="dispatcher-1"`;

/** Both programs are up, so that only the tested alert fires. `_` is a scrape without a value. */
const up = { [`up{${api}}`]: "1x60", [`up{${dispatcher}}`]: "1x60" };

/** One value a minute, in promtool's notation: `0x10 5` is 0 eleven times, then 5. */
type Series = Readonly<Record<string, string>>;

/** Series at which an alert must fire, after how many minutes, and series at which it must not. */
const alerts: Readonly<
  Record<string, { readonly at: Series; readonly minutes: number; readonly notAt: Series }>
> = {
  SvcApiDown: {
    at: { ...up, [`up{${api}}`]: "1x5 0x60" },
    minutes: 12,
    notAt: { ...up, [`up{${api}}`]: "0x60", [`up{${api.replace("api-1", "api-2")}}`]: "1x60" },
  },
  SvcDispatcherDown: { at: { [`up{${api}}`]: "1x60" }, minutes: 6, notAt: up },
  SvcOutboxStuck: {
    at: { ...up, [`svc_outbox_oldest_age_seconds{${api}}`]: "61x30" },
    minutes: 3,
    notAt: { ...up, [`svc_outbox_oldest_age_seconds{${api}}`]: "60x30" },
  },
  SvcEventsRefused: {
    at: { ...up, [`svc_events_postponed_total{${api}, reason="refused"}`]: "0+1x30" },
    minutes: 8,
    notAt: { ...up, [`svc_events_postponed_total{${api}, reason="unconfirmed"}`]: "0+1x30" },
  },
  SvcDeliveriesLate: {
    at: {
      ...up,
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="60"}`]: "0+98x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="300"}`]: "0+100x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="+Inf"}`]: "0+100x60",
    },
    minutes: 15,
    notAt: {
      ...up,
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="60"}`]: "0+100x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="300"}`]: "0+100x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="first", le="+Inf"}`]: "0+100x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="later", le="60"}`]: "0x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="later", le="300"}`]: "0+100x60",
      [`svc_delivery_lag_seconds_bucket{${dispatcher}, attempt="later", le="+Inf"}`]: "0+100x60",
    },
  },
  SvcDeliveriesOverdue: {
    at: { ...up, [`svc_deliveries_oldest_due_age_seconds{${api}}`]: "61x30" },
    minutes: 11,
    notAt: { ...up, [`svc_deliveries_oldest_due_age_seconds{${api}}`]: "60x30" },
  },
  SvcDeliveriesUnsigned: {
    at: { ...up, [`svc_deliveries_postponed_total{${dispatcher}, reason="unsigned"}`]: "0+1x30" },
    minutes: 12,
    notAt: { ...up, [`svc_deliveries_postponed_total{${dispatcher}, reason="busy"}`]: "0+1x60" },
  },
  SvcDeadLetters: {
    at: { ...up, [`svc_dead_letters_total{${dispatcher}, reason="spent"}`]: "0x5 1x20" },
    minutes: 8,
    notAt: { ...up, [`svc_dead_letters_total{${dispatcher}, reason="spent"}`]: "7x30" },
  },
  SvcDeadLettersHeldUp: {
    at: { ...up, [`svc_deliveries_awaiting_dead_letter{${dispatcher}}`]: "2x30" },
    minutes: 16,
    notAt: { ...up, [`svc_deliveries_awaiting_dead_letter{${dispatcher}}`]: "2x10 0x30" },
  },
  SvcQueueGrows: {
    at: { ...up, [`svc_queue_messages{${api}, queue="svc.fanout"}`]: "10001x30" },
    minutes: 11,
    notAt: { ...up, [`svc_queue_messages{${api}, queue="svc.dead"}`]: "10001x30" },
  },
  SvcBreakersOpen: {
    at: { ...up, [`svc_receiver_breakers{${dispatcher}, state="open"}`]: "1x60" },
    minutes: 31,
    notAt: { ...up, [`svc_receiver_breakers{${dispatcher}, state="half_open"}`]: "1x60" },
  },
  SvcBrokerDisconnected: {
    at: { ...up, [`svc_broker_connected{${dispatcher}}`]: "0x30" },
    minutes: 6,
    notAt: { ...up, [`svc_broker_connected{${dispatcher}}`]: "0 0 0 1x30" },
  },
  SvcReloadRefused: {
    at: { ...up, [`svc_configuration_reload_success{${api}}`]: "1 1 0x30" },
    minutes: 4,
    notAt: { ...up, [`svc_configuration_reload_success{${api}}`]: "1x30" },
  },
  SvcApiErrors: {
    at: {
      ...up,
      [`svc_http_requests_total{${api}, status="200"}`]: "0+98x60",
      [`svc_http_requests_total{${api}, status="500"}`]: "0+2x60",
    },
    minutes: 15,
    notAt: {
      ...up,
      [`svc_http_requests_total{${api}, status="404"}`]: "0+98x60",
      [`svc_http_requests_total{${api}, status="500"}`]: "0+0x60",
      [`svc_http_requests_total{${api}, status="503"}`]: "0+2x60",
      [`svc_http_requests_over_limit_total{${api}}`]: "0+2x60",
    },
  },
  SvcDatabasePoolExhausted: {
    at: { ...up, [`svc_database_pool_waiting{${api}}`]: "3x30" },
    minutes: 11,
    notAt: { ...up, [`svc_database_pool_waiting{${api}}`]: "3 0 3 3 0 3 3 3 0 3 3 3 0 3" },
  },
  SvcEventLoopSlow: {
    at: { ...up, [`nodejs_eventloop_lag_p99_seconds{${dispatcher}}`]: "0.6x30" },
    minutes: 11,
    notAt: { ...up, [`nodejs_eventloop_lag_p99_seconds{${dispatcher}}`]: "0.4x30" },
  },
  SvcBlind: {
    at: { ...up, [`svc_scrape_source_success{${api}, source="broker"}`]: "0x30" },
    minutes: 11,
    notAt: { ...up, [`svc_scrape_source_success{${api}, source="broker"}`]: "1x30" },
  },
};

function groupsOf(values: object = {}) {
  const rule = find(render({ values: { prometheusRule: { enabled: true, ...values } } }), "PrometheusRule");
  return rule.spec?.groups ?? [];
}

describe("the alerts", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-alerts-"));
    writeFileSync(join(folder, "rules.yaml"), stringify({ groups: groupsOf() }));
  });
  after(() => rmSync(folder, { recursive: true }));

  /** Returns the names of the alerts that fire. */
  function firing(series: Series, minutes: number): readonly string[] {
    const test = {
      rule_files: ["rules.yaml"],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          promql_expr_test: [
            {
              expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
              eval_time: `${minutes}m`,
              exp_samples: [{ labels: "nothing", value: 1 }],
            },
          ],
        },
      ],
    };
    writeFileSync(join(folder, "test.yaml"), stringify(test));
    try {
      promtool(["test", "rules", join(folder, "test.yaml")]);
    } catch (error) {
      // The expectation never matches, so promtool's error lists the alerts that fired.
      const [, got] = /got:([^]*)$/.exec(String(error)) ?? [];
      if (got === undefined) throw error;
      return [...got.matchAll(/alertname="(\w+)"/g)].map(([, name = ""]) => name);
    }
    throw new Error("promtool found what there never is");
  }

  it("are rules that Prometheus takes", () => {
    expect(promtool(["check", "rules", "--lint=all", "--lint-fatal", join(folder, "rules.yaml")])).to.include(
      "SUCCESS",
    );
  });

  it("are all tried here", () => {
    const names = groupsOf().flatMap(({ rules }) => rules.map(({ alert }) => alert));

    expect(Object.keys(alerts)).to.have.members(names);
  });

  for (const [name, { at, minutes, notAt }] of Object.entries(alerts)) {
    it(`${name} fires for its fault, alone`, () => {
      expect(firing(at, minutes)).to.deep.equal([name]);
    });

    it(`${name} is silent for similar values`, () => {
      expect(firing(notAt, 45)).to.deep.equal([]);
    });
  }

  it("ignore another release", () => {
    expect(firing({ ...up, [`svc_broker_connected{${elsewhere}}`]: "0x30" }, 20)).to.deep.equal([]);
  });

  it("have the thresholds and the labels of the values", () => {
    const own = { alert: "MyOwn", expr: "vector(1)" };
    const values = {
      thresholds: { outboxAgeSeconds: 5, queueMessages: 2_000_000 },
      alertLabels: { team: "a" },
      additionalRules: [own],
    };
    const rules = groupsOf(values).flatMap((group) => group.rules);

    expect(rules.find(({ alert }) => alert === "SvcOutboxStuck")?.expr).to.match(/> 5$/);
    expect(rules.find(({ alert }) => alert === "SvcQueueGrows")?.expr).to.match(/> 2000000$/);
    expect(rules[0]).to.deep.include({ labels: { severity: "critical", team: "a" } });
    expect(rules.at(-1)).to.deep.equal(own);
  });
});
