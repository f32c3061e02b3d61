import { readFileSync } from "node:fs";
import { expect } from "chai";
import { exchanges } from "../../src/broker/topology.ts";
import { parseMetrics, valueOf, type ShownMetric } from "../support/exposition.ts";
import { createNote, notesYaml, subscribe, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** Labels that Prometheus itself adds. */
const addedLabels = ["namespace", "job", "pod", "instance"];

interface Query {
  readonly metric: string;
  readonly labels: readonly string[];
}

/**
 * Returns every metric that an expression names, with the labels by which it is matched or grouped.
 */
function queriesOf(expression: string): readonly Query[] {
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(/,\s*/),
  );
  return [...expression.matchAll(/\b((?:svc|process|nodejs)_[a-z0-9_]+)(?:\{(.*?)\})?/g)].map(
    ([, metric = "", matchers = ""]) => ({
      metric,
      labels: [
        ...[...matchers.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label = ""]) => label),
        ...grouped,
      ].filter((label) => label !== "le" && !addedLabels.includes(label)),
    }),
  );
}

/** Returns every text under the key, at any depth. */
function textsUnder(key: string, value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) =>
    name === key && typeof child === "string" ? [child] : textsUnder(key, child),
  );
}

/** A resource whose base query only the Prisma client supports. */
const papers = {
  "papers.yaml": notesYaml
    .replace("name: notes", "name: papers")
    .replace("model: Note", "model: Paper")
    .replace(/^triggers:.*$/m, "triggers: []\nmodule: ./papers.mjs"),
  "papers.mjs": `export const baseQuery = () => ({ where: { text: { not: "hidden", mode: "insensitive" } } });`,
};

describe("/metrics after a scenario on PostgreSQL and RabbitMQ", function () {
  let service: TestService;
  let good: TestReceiver;
  let bad: TestReceiver;
  let metrics: ReadonlyMap<string, ShownMetric>;

  before(async () => {
    service = await startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml, ...papers },
      webhooks: { maxAttempts: 2 },
    });
    [good, bad] = await Promise.all([startReceiver(), startReceiver()]);
    bad.answer = { status: 500 };
    const [ada, eve] = [await service.createUser(), await service.createUser({ name: "Eve" })];
    await subscribe(ada, good, { events: ["on_create"] });
    const { id } = await subscribe(ada, bad, { events: ["on_create"] });
    for (let count = 0; count < 3; count++) await createNote(ada);
    await eve.request("GET", "/resources/notes");
    await eve.request("GET", "/resources/papers/1");
    await eve.request("GET", "/resources/unknown");
    await fetch(`${service.baseUrl}/whoami`);
    await service.infrastructure.broker.publish([
      {
        exchange: exchanges.events,
        routingKey: "strange.event",
        messageId: "strange",
        body: Buffer.from("{}"),
      },
    ]);
    await good.waitFor(3);
    await until(
      async () => (await ada.request("GET", "/webhook-deliveries?status=failed")).body.total === 3,
      {
        what: "three failed deliveries",
      },
    );
    // Its event is old, and must not count as late.
    bad.answer = { status: 200 };
    const failed = await untilDelivery(ada, id, "failed");
    await ada.request("POST", `/webhook-deliveries/${failed.id}/retry`);
    await untilDelivery(ada, id, "delivered");
    await until(async () => (await service.infrastructure.broker.depth("svc.dead")) === 4, {
      what: "dead letters",
    });

    service.infrastructure.metrics.describeProcess({ version: "1.2.3", program: "all" });
    metrics = parseMetrics(await service.infrastructure.metrics.scrape());
  });

  after(async () => {
    await service.stop();
    await Promise.all([good.close(), bad.close()]);
  });

  const one = (name: string, labels?: Readonly<Record<string, string>>): number | undefined =>
    valueOf(metrics, name, labels);

  it("counts requests by the patterns of their routes", () => {
    const route = "/svc-api/resources/:name";
    const requests = "svc_http_requests_total";

    expect(one(requests, { route, method: "POST", status: "201" })).to.equal(3);
    expect(one(requests, { route, method: "GET", status: "200" })).to.equal(1);
    expect(one(requests, { route, method: "GET", status: "404" })).to.equal(1);
    expect(one(requests, { route: "unmatched", status: "401" })).to.equal(1);
    expect(one("svc_http_request_duration_seconds_count", { route, method: "POST" })).to.equal(3);
    expect(one("svc_http_requests_in_flight")).to.equal(0);
  });

  it("counts the requests that the Prisma client answers", () => {
    expect(one("svc_prisma_operations_total", { resource: "papers" })).to.equal(1);
    expect(one("svc_prisma_operations_total", { resource: "notes" })).to.equal(undefined);
  });

  it("counts events from the outbox to the fan-out", () => {
    expect(one("svc_events_captured_total")).to.equal(3);
    expect(one("svc_events_published_total", { resource: "notes", trigger: "on_create" })).to.equal(3);
    expect(one("svc_events_fanned_out_total")).to.equal(3);
    expect(one("svc_deliveries_created_total")).to.equal(6);
    expect(one("svc_events_postponed_total")).to.equal(0);
    expect(one("svc_events_republished_total")).to.equal(0);
    expect(one("svc_outbox_events")).to.equal(0);
    expect(one("svc_outbox_oldest_age_seconds")).to.equal(0);
  });

  it("counts attempts by outcome and error, and the final states of the deliveries", () => {
    const attempts = "svc_delivery_attempts_total";

    expect(one(attempts, { outcome: "delivered", error: "none" })).to.equal(4);
    expect(one(attempts, { outcome: "retry", error: "http" })).to.equal(3);
    expect(one(attempts, { outcome: "failed", error: "http" })).to.equal(3);
    expect(one("svc_delivery_attempt_duration_seconds_count")).to.equal(10);
    expect(one("svc_delivery_attempts_in_flight")).to.equal(0);
    expect(one("svc_deliveries_failed_total")).to.equal(3);
    expect(one("svc_dead_letters_total", { reason: "spent" })).to.equal(3);
    expect(one("svc_dead_letters_total", { reason: "foreign" })).to.equal(1);
    expect(one("svc_deliveries_swept_total")).to.be.at.least(3);
    expect(one("svc_deliveries_waiting")).to.equal(0);
    expect(one("svc_deliveries_oldest_due_age_seconds")).to.equal(0);
    expect(one("svc_deliveries_awaiting_dead_letter")).to.equal(0);
  });

  it("measures the lag from the change to the answer, of first attempts, and not of manual retries", () => {
    expect(one("svc_delivery_lag_seconds_count", { attempt: "first" })).to.equal(3);
    expect(one("svc_delivery_lag_seconds_count", { attempt: "later" })).to.equal(0);
    expect(one("svc_delivery_lag_seconds_sum")).to.be.within(0.001, 30);
  });

  it("shows queues, pool, breakers, configuration and build", () => {
    expect(one("svc_queue_messages", { queue: "svc.dead" })).to.equal(4);
    expect(one("svc_queue_messages", { queue: "svc.fanout" })).to.equal(0);
    expect(one("svc_broker_connected")).to.equal(1);
    expect(one("svc_database_pool_connections")).to.be.at.least(1);
    expect(one("svc_database_pool_limit")).to.equal(service.config.database.poolSize + 7);
    expect(one("svc_receiver_breakers", { state: "open" })).to.equal(0);
    expect(one("svc_configuration_reload_success")).to.equal(1);
    expect(one("svc_configuration_last_reload_success_timestamp_seconds")).to.be.closeTo(
      Date.now() / 1_000,
      120,
    );
    expect(one("svc_build_info", { version: "1.2.3", program: "all" })).to.equal(1);
    expect(one("svc_scrape_source_success")).to.equal(2);
  });

  it("has every metric of the operations guide, of that type and with those labels, and no other", () => {
    const guide = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
    const [, table = ""] = /<!-- metrics:[^\n]*-->\n((?:\|.*\n)+)/.exec(guide) ?? [];
    const documented = [...table.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \|/gm)].map(
      ([, name, type, labels = ""]) => ({
        name,
        type,
        labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).toSorted(),
      }),
    );
    const shown = [...metrics.values()].filter(({ name }) => name.startsWith("svc_"));

    expect(documented.toSorted(byName)).to.deep.equal(
      shown.map(({ name, type, labels }) => ({ name, type, labels })).toSorted(byName),
    );
  });

  it("has every metric that the dashboard and the alerts of the chart use", () => {
    const dashboard: unknown = JSON.parse(readFileSync("helm/dashboards/svc.json", "utf8"));
    const rules = readFileSync("helm/templates/prometheus-rule.yaml", "utf8").replaceAll(
      /\{\{-?.*?-?\}\}/g,
      "",
    );
    const expressions = [
      ...textsUnder("expr", dashboard),
      ...[...rules.matchAll(/expr:(?: \|\n)?(.*(?:\n {12,}.*)*)/g)].map(([, expression = ""]) => expression),
    ];
    const queries = expressions.flatMap(queriesOf);

    const missing = queries.filter(({ metric, labels }) => {
      const shown = metrics.get(metric) ?? metrics.get(metric.replace(/_(bucket|sum|count)$/, ""));
      return shown === undefined || labels.some((label) => !shown.labels.includes(label));
    });

    expect(missing).to.deep.equal([]);
    // Roughly the real number: a pattern that matches nothing would find no fault.
    expect(queries).to.have.length.above(60);
  });
});

function byName(a: { readonly name: string | undefined }, b: { readonly name: string | undefined }): number {
  return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
}
