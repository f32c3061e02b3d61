import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { parseTraceparent } from "../../src/telemetry/tracing.ts";
import { startCollector, type CollectedSpan, type TestCollector } from "../support/collector.ts";
import { notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, request, startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

for (const mode of modes) {
  describe(`tracing (${mode})`, function () {
    this.timeout(60_000);
    let collector: TestCollector;
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;

    before(async () => {
      collector = await startCollector();
      service = await startService({
        mode,
        resources: { "notes.yaml": notesYaml },
        webhooks: { maxAttempts: 2 },
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50" },
      });
      ada = await service.createUser();
    });
    after(async () => {
      await service?.stop();
      await collector?.close();
    });
    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(async () => {
      await unsubscribeAll(ada);
      await receiver.close();
    });

    /** Writes as Ada, as a part of the caller's trace. */
    async function write(method: string, path: string, traceparent: string, text = "hello"): Promise<number> {
      const { status, body } = await request({
        url: service.baseUrl + path,
        method,
        token: ada.token,
        headers: { traceparent },
        ...(method === "DELETE" || path.endsWith("/retry") ? {} : { body: { text } }),
      });
      expect(status).to.be.oneOf([200, 201, 204]);
      return body?.id as number;
    }

    it("joins the request, its publish, its fan-out and its attempt to the caller's trace, each to the one before", async () => {
      await subscribe(ada, receiver);
      const caller = newTrace();

      await write("POST", "/resources/notes?secret=in-the-query", caller.traceparent);
      const [received] = await receiver.waitFor(1);
      const [requested, published, fannedOut, attempted] = await chainOf(collector, caller.traceId);

      expect(requested.parentSpanId).to.equal(caller.spanId);
      expect(published.parentSpanId).to.equal(requested.spanId);
      expect(fannedOut.parentSpanId).to.equal(published.spanId);
      expect(attempted.parentSpanId).to.equal(fannedOut.spanId);
      expect(received?.headers["traceparent"]).to.equal(`00-${caller.traceId}-${attempted.spanId}-01`);
      expect(requested).to.deep.include({
        name: "POST /svc-api/resources/:name",
        kind: "server",
        isError: false,
      });
      expect(requested.attributes).to.deep.equal({
        "http.request.method": "POST",
        "http.route": "/svc-api/resources/:name",
        "http.response.status_code": 201,
        "url.path": "/svc-api/resources/notes",
        "network.protocol.version": "1.1",
      });
      expect(attempted).to.deep.include({ kind: "client", isError: false });
      expect(attempted.attributes).to.deep.equal({
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": receiver.port,
        "url.scheme": "http",
        "svc.delivery.uuid": received?.headers["x-service-delivery"],
        "svc.delivery.attempt": 1,
        "svc.event.uuid": received?.headers["x-service-event"],
        "svc.resource": "notes",
      });
      expect(attempted.resource).to.include({ "service.name": "svc", "telemetry.sdk.language": "nodejs" });
    });

    it("does the same for updates and deletes", async () => {
      const id = await write("POST", "/resources/notes", newTrace().traceparent);
      await subscribe(ada, receiver);
      const [updating, deleting] = [newTrace(), newTrace()];

      await write("PUT", `/resources/notes/${id}`, updating.traceparent, "changed");
      await write("DELETE", `/resources/notes/${id}`, deleting.traceparent);
      const [updated] = await chainOf(collector, updating.traceId);
      const [deleted] = await chainOf(collector, deleting.traceId);

      expect(updated.parentSpanId).to.equal(updating.spanId);
      expect(deleted.parentSpanId).to.equal(deleting.spanId);
    });

    it("makes retries, manual ones too, further spans of the same trace, with their errors", async () => {
      const { id } = await subscribe(ada, receiver);
      receiver.answer = (_request, response) => {
        response.statusCode = receiver.received.length === 1 ? 503 : 404;
        response.end();
      };
      const caller = newTrace();

      await write("POST", "/resources/notes", caller.traceparent);
      const isAttempt = ({ traceId, kind }: CollectedSpan): boolean =>
        traceId === caller.traceId && kind === "client";
      const automatic = await collector.waitFor(isAttempt, { count: 2 });
      const failed = await until(() => lastFailed(service), { what: "a failed delivery" });
      receiver.answer = {};
      const retrying = newTrace();
      await write("POST", `/webhook-deliveries/${failed}/retry`, retrying.traceparent);
      const [manual] = await collector.waitFor(
        ({ traceId, kind }) => traceId === retrying.traceId && kind === "client",
      );
      const delivered = await untilDelivery(ada, id, "delivered");

      expect(delivered.request.headers.traceparent).to.equal(`00-${retrying.traceId}-…`);
      const [first, second] = automatic;
      expect(first?.isError).to.equal(true);
      expect(first?.attributes).to.include({ "http.response.status_code": 503, "error.type": "503" });
      expect(second?.attributes).to.include({ "http.request.resend_count": 1, "svc.delivery.attempt": 2 });
      expect(second?.parentSpanId).to.equal(first?.parentSpanId);
      expect(second?.spanId).not.to.equal(first?.spanId);
      expect(receiver.received[1]?.headers["traceparent"]).to.equal(
        `00-${caller.traceId}-${second?.spanId}-01`,
      );
      expect(manual?.attributes["svc.delivery.attempt"]).to.equal(1);
    });

    it("begins a trace for a write of a program that has none, and joins the trace of one that sends it", async () => {
      await subscribe(ada, receiver);
      const writer = newTrace();
      const { sql } = service.infrastructure;
      const insert = `INSERT INTO public.notes (text, user_id) VALUES ('by hand', ${ada.id})`;

      await sql(insert);
      const [untraced] = await receiver.waitFor(1);
      await sql(`${insert} /*db_driver='pg',traceparent='${writer.traceparent}'*/`);
      await receiver.waitFor(2);
      const begun = parseTraceparent(untraced?.headers["traceparent"]);
      const spans = await collector.waitFor(({ traceId }) => traceId === begun?.traceId, { count: 3 });
      const [joined] = await collector.waitFor(
        ({ traceId, kind }) => traceId === writer.traceId && kind === "producer",
      );

      expect(spans.map(({ kind }) => kind).toSorted()).to.deep.equal(["client", "consumer", "producer"]);
      expect(spans.find(({ kind }) => kind === "producer")?.parentSpanId).to.equal("");
      expect(joined?.parentSpanId).to.equal(writer.spanId);
    });

    it("records nothing of a request whose caller records nothing, nor of later steps, and passes that on", async () => {
      await subscribe(ada, receiver);
      const caller = newTrace();

      await write("POST", "/resources/notes", caller.traceparent.replace(/01$/, "00"));
      const [received] = await receiver.waitFor(1);
      const last = newTrace();
      await write("POST", "/resources/notes", last.traceparent);
      await chainOf(collector, last.traceId);

      const told = parseTraceparent(received?.headers["traceparent"]);
      expect(told?.isSampled).to.equal(false);
      expect(told?.traceId).not.to.equal("f".repeat(32));
      const ofBoth = collector.spans.filter(({ traceId }) =>
        [caller.traceId, told?.traceId].includes(traceId),
      );
      expect(ofBoth).to.deep.equal([]);
    });

    it("has no private data in a span", async () => {
      const canary = `canary-${randomBytes(6).toString("hex")}`;
      const { secret } = await subscribe(ada, receiver, { url: `${receiver.url}/${canary}?key=${canary}` });
      const caller = newTrace();

      await request({
        url: `${service.baseUrl}/resources/notes?token=${canary}`,
        method: "POST",
        token: ada.token,
        headers: { traceparent: caller.traceparent, "x-canary": canary, "user-agent": canary },
        body: { text: canary },
      });
      await chainOf(collector, caller.traceId);

      const said = JSON.stringify(collector.spans);
      for (const hidden of [canary, secret, ada.token, ada.email]) expect(said).not.to.include(hidden);
    });
  });
}

for (const mode of modes) {
  describe(`without tracing (${mode})`, function () {
    this.timeout(60_000);
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;

    before(async () => {
      service = await startService({ mode, resources: { "notes.yaml": notesYaml } });
      receiver = await startReceiver();
      ada = await service.createUser();
      await subscribe(ada, receiver);
    });
    after(async () => {
      await service?.stop();
      await receiver?.close();
    });

    it("adds nothing to statements, messages and deliveries", async () => {
      const { traceparent } = newTrace();
      const headers = { traceparent };
      const url = `${service.baseUrl}/resources/notes`;

      await request({ url, method: "POST", token: ada.token, headers, body: { text: "hello" } });
      const [received] = await receiver.waitFor(1);

      const stored = await service.infrastructure.sql(
        "SELECT event.traceparent AS event, delivery.traceparent AS delivery FROM svc.events AS event JOIN svc.deliveries AS delivery ON event_id = event.id",
      );
      expect(stored).to.deep.equal([{ event: null, delivery: null }]);
      expect(received?.headers).not.to.include.keys("traceparent");
    });

    it("passes on the trace of a program that writes one into its statement", async () => {
      const { traceparent } = newTrace();
      const before = receiver.received.length;

      await service.infrastructure.sql(
        `INSERT INTO public.notes (text, user_id) VALUES ('by hand', ${ada.id}) /*traceparent='${traceparent}'*/`,
      );
      const received = (await receiver.waitFor(before + 1)).at(-1);

      expect(received?.headers["traceparent"]).to.equal(traceparent);
    });
  });
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceparent: string;
}

function newTrace(): Trace {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

/** Returns the spans of a trace through the service, once all are collected. */
async function chainOf(
  collector: TestCollector,
  trace: string,
): Promise<readonly [CollectedSpan, CollectedSpan, CollectedSpan, CollectedSpan]> {
  const spans = await collector.waitFor(({ traceId }) => traceId === trace, {
    count: 4,
    what: "spans of a trace",
  });
  const of = (kind: CollectedSpan["kind"]): CollectedSpan => {
    const found = spans.filter((span) => span.kind === kind);
    expect(found, `${kind} spans`).to.have.length(1);
    return found[0] as CollectedSpan;
  };
  return [of("server"), of("producer"), of("consumer"), of("client")];
}

async function lastFailed({ infrastructure }: TestService): Promise<string | undefined> {
  const [row] = await infrastructure.sql<{ id: string }>(
    "SELECT id FROM svc.deliveries WHERE status = 'failed' ORDER BY id DESC LIMIT 1",
  );
  return row?.id;
}
