import { expect } from "chai";
import { exampleOf } from "../../src/openapi/examples.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request, startService, type Answer, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { createJudge, resolve, type DocumentedOperation, type ServedDocument } from "./answers.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * Requests that create come first, then those that show and change, then those that delete, the
 * newest resource first.
 */
const order = ["post", "get", "put", "patch", "batch", "delete"];

const unknownUuid = "00000000-0000-4000-8000-000000000000";

interface Step {
  readonly method: string;
  readonly path: string;
  readonly operation: DocumentedOperation;
}

describe("the examples of the document", () => {
  let service: TestService;
  let receiver: TestReceiver;
  let admin: TestUser;
  let document: ServedDocument;
  let judge: ReturnType<typeof createJudge>;
  /** Ids of the records that the examples created, by path. */
  const made = new Map<string, string>();

  before(async () => {
    service = await startService({ mode: "servers", webhooks: { maxAttempts: 1, backoffMs: [50] } });
    receiver = await startReceiver();
    receiver.answer = { status: 500 };
    admin = await service.createUser({ isAdmin: true });
    document = (await admin.request("GET", "/openapi.json")).body as ServedDocument;
    judge = createJudge(document);
    const events = ["on_create"];
    await admin.request("POST", "/webhooks", { url: `${receiver.url}/`, resource: "customers", events });
    await admin.request("POST", "/webhooks/1/replay", { since: "2020-01-01", until: "2020-01-02" });
  });
  after(async () => {
    await service?.stop();
    await receiver?.close();
  });

  function steps(): readonly Step[] {
    const all = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, operation]) => !hasOtherAnswer(operation))
        .map(([method, operation]) => ({ method, path, operation })),
    );
    const rank = ({ method, path }: Step): number =>
      order.indexOf(path.endsWith("/batch") ? "batch" : method);
    // A delivery for a retry exists after a record was created; deletes go from the last resource
    // to the first.
    const late = ({ path }: Step): boolean => path.startsWith("/webhook");
    return all.toSorted(
      (a, b) =>
        Number(late(a)) - Number(late(b)) ||
        rank(a) - rank(b) ||
        (rank(a) === 5 ? all.indexOf(b) - all.indexOf(a) : 0),
    );
  }

  function send(step: Step, query = ""): Promise<Answer> {
    const collection = step.path.replace(/\/\{id\}.*$/, "");
    const path = step.path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) => {
      return made.get(step.path.slice(0, at - 1)) ?? String(exampleOfParameter(step, name));
    });
    const body = step.operation.requestBody?.content["application/json"]?.example;
    const sent = step.path.endsWith("/batch")
      ? withIds(body, made.get(collection.replace("/batch", "")))
      : body;
    return request({
      url: `${service.baseUrl}${path}${query}`,
      method: step.method.toUpperCase(),
      token: admin.token,
      body: sent,
    });
  }

  it("are answered as documented, without a fault", async () => {
    const faults: string[] = [];
    for (const step of steps()) {
      if (step.path === "/webhook-deliveries/{id}/retry")
        await until(
          async () => (await admin.request("GET", "/webhook-deliveries/1")).body.status === "failed",
          { what: "the delivery fails" },
        );
      // An ended replay cannot be paused, resumed or cancelled.
      if (step.path.startsWith("/webhook-replays"))
        await service.infrastructure.sql("UPDATE svc.replays SET state = 'paused'");
      const answer = await send(step);
      const { id } = answer.body ?? {};
      if (step.method === "post" && id !== undefined) made.set(step.path, String(id));
      if (step.path === "/events") made.set(step.path, String(answer.body.data[0].uuid));
      const wrong =
        answer.status >= 300
          ? [`${answer.status} ${JSON.stringify(answer.body)}`]
          : judge.faultsOf(step.operation, answer);
      faults.push(...wrong.map((fault) => `${step.method} ${step.path}: ${fault}`));
    }

    expect(faults).to.deep.equal([]);
  });

  it("of every parameter of every list are accepted", async () => {
    const faults: string[] = [];
    for (const step of steps().filter(({ method }) => method === "get"))
      await Promise.all(
        queriesOf(step).map(async (query) => {
          const answer = await send(step, query);
          const wrong =
            answer.status === 200 ? judge.faultsOf(step.operation, answer) : [JSON.stringify(answer.body)];
          faults.push(...wrong.map((fault) => `${step.path}${query}: ${fault}`));
        }),
      );

    expect(faults).to.deep.equal([]);
  });

  it("include refusals: no token, another user's record, an invalid body, an unknown parameter", async () => {
    const stranger = await service.createUser();
    const customer = (
      await admin.request("POST", "/resources/customers", { name: "Ada", email: "a@example.com" })
    ).body.id as number;
    const { "/resources/customers": customers = {}, "/resources/customers/{id}": one = {} } = document.paths;
    const cases: readonly (readonly [DocumentedOperation | undefined, Answer, number])[] = [
      [
        customers["get"],
        await request({ url: `${service.baseUrl}/resources/customers`, method: "GET" }),
        401,
      ],
      [customers["get"], await admin.request("GET", "/resources/customers?colour=red"), 422],
      [customers["post"], await admin.request("POST", "/resources/customers", { name: 5 }), 422],
      [customers["post"], await admin.request("POST", "/resources/customers", "{"), 400],
      [one["delete"], await stranger.request("DELETE", `/resources/customers/${customer}`), 403],
      [one["get"], await admin.request("GET", "/resources/customers/0"), 404],
      [one["delete"], await withEmpty("DELETE", `/resources/customers/${customer}`, "If-Match"), 400],
      [customers["post"], await withEmpty("POST", "/resources/customers", "Idempotency-Key"), 400],
    ];

    for (const [operation, answer, status] of cases) {
      expect(answer.status).to.equal(status);
      expect(judge.faultsOf(operation as DocumentedOperation, answer)).to.deep.equal([]);
    }
  });

  it("include the refusal of an entity tag for what has none", async () => {
    const { id: token } = (await admin.request("POST", "/tokens", { name: "x" })).body;
    const asked = { url: `${receiver.url}/`, resource: "customers", events: ["on_create"] };
    const { id: webhook } = (await admin.request("POST", "/webhooks", asked)).body;
    const refused: string[] = [];
    for (const { method, path, operation } of steps()) {
      if (!["put", "patch", "delete"].includes(method) || path.startsWith("/resources/")) continue;
      const target = path
        .replace("/users/{id}", `/users/${admin.id}`)
        .replace("/webhooks/{id}", `/webhooks/${String(webhook)}`)
        .replace(/\{\w+\}/, String(token));
      const answer = await request({
        url: service.baseUrl + target,
        method: method.toUpperCase(),
        token: admin.token,
        headers: { "If-Match": '"a"' },
      });

      expect(answer.status, target).to.equal(412);
      expect(judge.faultsOf(operation, answer)).to.deep.equal([]);
      refused.push(operation.operationId);
    }
    expect(refused).to.have.length(7);
  });

  it("include the answer to a token with other scopes", async () => {
    const faults: string[] = [];
    for (const scope of ["webhooks", "tasks:read"]) {
      const { body } = await admin.request("POST", "/tokens", { name: scope, scopes: [scope] });
      for (const [path, { get: operation }] of Object.entries(document.paths)) {
        if (operation === undefined || path === "/docs") continue;
        // A stream that is not refused has no end.
        if (path === "/events/stream" && scope === "tasks:read") continue;
        const own = path.replace(/\{\w+\}/g, path.startsWith("/events") ? unknownUuid : "1");
        const url = `${service.baseUrl}${own}`;
        const answer = await request({ url, method: "GET", token: body.token });
        faults.push(...judge.faultsOf(operation, answer).map((fault) => `${scope} ${path}: ${fault}`));
      }
    }

    expect(faults).to.deep.equal([]);
  });

  it("name every parameter that a list accepts: all others are refused, also by other reads", async () => {
    const faults: string[] = [];
    for (const step of steps().filter(({ method, path }) => method === "get" && path !== "/openapi.json"))
      for (const query of queriesOf(step).length === 0 ? ["sort=id&filter[id]=1"] : ["colour=red"]) {
        const answer = await send(step, `?${query}`);
        const names = query.split("&").map((one) => one.split("=")[0]);
        expect(Object.keys(answer.body.errors ?? {}), `${step.path}?${query}`).to.deep.equal(names);
        faults.push(...judge.faultsOf(step.operation, answer));
      }

    expect(faults).to.deep.equal([]);
  });

  it("are those of real deliveries", async () => {
    const [delivery] = await receiver.waitFor(1);

    const body = JSON.parse(delivery?.rawBody.toString() ?? "") as Json;
    const { parameters } = (document.webhooks["customers.on_create"]?.post ?? {}) as {
      readonly parameters: readonly Json[];
    };
    expect(judge.faultsOfRequest("customers.on_create", body)).to.deep.equal([]);
    for (const { name, schema } of parameters.filter(({ required }) => required === true)) {
      const sent = String(delivery?.headers[String(name).toLowerCase()]);
      const { pattern, const: only } = schema as Json;
      if (typeof pattern === "string") expect(sent).to.match(new RegExp(pattern));
      else
        expect(sent)
          .to.equal(only ?? sent)
          .and.not.equal("undefined");
    }
  });

  it("are those of pings and operational events, too", async () => {
    const url = `${receiver.url}/operational`;
    const told = { url, resource: "service", events: ["delivery.failed"] };
    const { id } = (await admin.request("POST", "/webhooks", told)).body;
    await admin.request("POST", `/webhooks/${id}/test`);
    await admin.request("POST", "/resources/customers", { name: "Eve", email: "eve@example.com" });
    const bodies = await until(
      () => {
        const sent = receiver.received.filter(({ path }) => path === "/operational");
        return sent.length >= 2 && sent.map(({ rawBody }) => JSON.parse(rawBody.toString()) as Json);
      },
      { what: "a ping and delivery.failed" },
    );

    expect(bodies.map(({ event }) => event)).to.deep.equal(["ping", "delivery.failed"]);
    expect(judge.faultsOfRequest("ping", bodies[0])).to.deep.equal([]);
    expect(judge.faultsOfRequest("service.delivery.failed", bodies[1])).to.deep.equal([]);
  });

  /** Sends a header without a value, as from an unset variable. */
  function withEmpty(method: string, path: string, header: string): Promise<Answer> {
    const body = method === "POST" ? { name: "Ada", email: "b@example.com" } : undefined;
    return request({
      url: service.baseUrl + path,
      method,
      token: admin.token,
      body,
      headers: { [header]: "" },
    });
  }

  /** Returns one query for each parameter, operator and choice. */
  function queriesOf({ operation }: Step): readonly string[] {
    const parameters = (operation.parameters ?? []).map((one) => resolve(document, one));
    return parameters
      .filter((one) => one["in"] === "query")
      .flatMap(({ name, schema, style }) => {
        const { properties, items } = schema as {
          readonly properties?: Readonly<Record<string, Json>>;
          readonly items?: Json;
        };
        if (style === "deepObject")
          return Object.entries(properties ?? {}).map(([operator, operand]) =>
            queryOf(`${String(name)}[${operator}]`, exampleOf(operand, "text")),
          );
        if (items !== undefined)
          return ((items["enum"] as string[] | undefined) ?? ["id"]).map((choice) =>
            queryOf(String(name), choice),
          );
        const choices = (schema as Json)["enum"] as readonly string[] | undefined;
        if (choices !== undefined) return choices.map((choice) => queryOf(String(name), choice));
        return [queryOf(String(name), name === "cursor" ? "" : exampleOf(schema as Json, "text"))];
      });
  }
});

function exampleOfParameter({ operation }: Step, wanted: string): unknown {
  return operation.parameters?.find(({ name }) => name === wanted)?.["example"];
}

function queryOf(key: string, value: unknown): string {
  return `?${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`;
}

/** The page is HTML, and a stream has no end: each has a test of its own. */
function hasOtherAnswer({ responses }: DocumentedOperation): boolean {
  const content = responses["200"]?.["content"] as Json | undefined;
  return content !== undefined && !("application/json" in content);
}

/** Replaces the example's id by the id of an existing record. */
function withIds(body: unknown, id: string | undefined): unknown {
  const { operations = [] } = body as { readonly operations?: readonly Json[] };
  return { operations: operations.map((one) => ("id" in one && id !== undefined ? { ...one, id } : one)) };
}
