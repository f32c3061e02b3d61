import type { Pool } from "pg";
import { until } from "../test/support/wait.ts";
import type { BaselineAnswer, BaselineQuestion } from "./baseline.ts";
import { compare, type Comparison, type Generator, type Side } from "./compare.ts";
import type { RequestSpec } from "./load.ts";
import { startPeer } from "./peer.ts";
import { startProgram, type Program } from "./program.ts";
import { countStatements, type StatementCount } from "./statements.ts";
import { poolSize, publicUrl, type Surroundings } from "./surroundings.ts";

/** What every part of a run is given. */
export interface BenchContext {
  readonly surroundings: Surroundings;
  readonly generator: Generator;
  /** Shortens or lengthens everything. */
  readonly scale: number;
  readonly atEnd: (release: () => Promise<void> | void) => void;
  readonly progress: (text: string) => void;
}

export interface RequestResults {
  readonly comparisons: readonly Comparison[];
  readonly logging: Comparison;
  readonly requestStatements: Readonly<Record<string, StatementCount>>;
}

const collection = "/svc-api/resources/notes";
const body = JSON.stringify({ title: "A note", body: "Lorem ipsum dolor. ".repeat(10) });

export const createRequest: RequestSpec = { method: "POST", path: collection, body, status: 201 };
export const listRequest: RequestSpec = { method: "GET", path: collection, status: 200 };
export const showRequest: RequestSpec = {
  method: "GET",
  path: `${collection}/{id}`,
  ids: [1, 10_000],
  status: 200,
};

/** List, show and create beside the hand-written server; the cost of log lines; statements per request. */
export async function measureRequests(context: BenchContext): Promise<RequestResults> {
  const { surroundings, atEnd, progress, scale } = context;
  const { token, postgresPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_requests");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram({ name: "api", surroundings, databaseUrl });
  atEnd(() => api.stop());
  // What nobody fans out stays in the outbox, and the relay stops at a full window.
  const dispatcher = await startProgram({ name: "dispatcher", surroundings, databaseUrl });
  atEnd(() => dispatcher.stop());
  const service: Side = {
    name: "svc api",
    port: api.port,
    pid: api.pid,
    settle: () => allPublished(pool),
  };
  const baseline = await startBaseline(context);
  await expectSameAnswers({ service, baseline, token });

  const run = (
    name: string,
    sides: readonly [Side, Side],
    request: RequestSpec,
    pairs: number,
  ): Promise<Comparison> => {
    progress(`${name}: ${sides[0].name} and ${sides[1].name}`);
    const blockMs = 3_000 * scale;
    return compare({
      name,
      sides,
      request,
      generator: context.generator,
      token,
      postgresPid,
      pairs,
      blockMs,
    });
  };
  const list = await run("list", [service, baseline], listRequest, 5);
  const show = await run("show", [service, baseline], showRequest, 5);
  const talkative = await startTalkative(context, databaseUrl);
  const logging = await run("show", [talkative.side, service], showRequest, 3);
  await talkative.program.stop();
  const create = await run("create", [service, baseline], createRequest, 5);
  progress("statements per request");
  const requestStatements = await countByOperation({ pool, port: api.port, token });
  await api.stop();
  await dispatcher.stop();
  return { comparisons: [list, show, create], logging, requestStatements };
}

async function startBaseline({ surroundings, atEnd }: BenchContext): Promise<Side> {
  const databaseUrl = await surroundings.copyDatabase("svc_baseline");
  const peer = startPeer<BaselineQuestion, BaselineAnswer>("baseline.ts");
  atEnd(() => peer.end());
  const { port } = await peer.ask({ databaseUrl, poolSize, publicUrl });
  return { name: "by hand", port, pid: peer.pid };
}

/** The same program with a log line for every request, as it is by default. */
async function startTalkative(
  { surroundings, atEnd }: BenchContext,
  databaseUrl: string,
): Promise<{ readonly program: Program; readonly side: Side }> {
  const program = await startProgram({ name: "api", surroundings, databaseUrl, logLevel: "info" });
  atEnd(() => program.stop());
  return { program, side: { name: "level info", port: program.port, pid: program.pid } };
}

async function allPublished(pool: Pool): Promise<void> {
  const text = "SELECT NOT EXISTS (SELECT FROM svc.outbox) AS done";
  await until(async () => (await pool.query<{ readonly done: boolean }>(text)).rows[0]?.done, {
    what: "the relay and the fan-out to be done with every event",
    timeoutMs: 120_000,
  });
}

/** Two servers that answer differently would be compared in vain. */
async function expectSameAnswers({
  service,
  baseline,
  token,
}: {
  readonly service: Side;
  readonly baseline: Side;
  readonly token: string;
}): Promise<void> {
  const answerOf = async ({ port }: Side, method: string, path: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(method === "POST" ? { body } : {}),
    });
    const text = await response.text();
    // A new record's times are those of the moment.
    const times = /"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"/g;
    return `${response.status} ${method === "POST" ? text.replaceAll(times, "now") : text}`;
  };
  for (const [method, path] of [
    ["GET", `${collection}?page=3`],
    ["GET", `${collection}/77`],
    ["POST", collection],
  ] as const) {
    const [one, other] = [await answerOf(service, method, path), await answerOf(baseline, method, path)];
    if (one !== other) throw new Error(`${method} ${path} is answered differently:\n${one}\n${other}`);
  }
}

/** One request after another. */
async function countByOperation({
  pool,
  port,
  token,
}: {
  readonly pool: Pool;
  readonly port: number;
  readonly token: string;
}): Promise<Readonly<Record<string, StatementCount>>> {
  const send = async (method: string, path: string, sent?: string): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(sent === undefined ? {} : { body: sent }),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}`);
  };
  const operations: Readonly<Record<string, (id: number) => Promise<void>>> = {
    list: () => send("GET", collection),
    show: (id) => send("GET", `${collection}/${id}`),
    create: () => send("POST", collection, body),
    update: (id) => send("PUT", `${collection}/${id}`, JSON.stringify({ title: `Another title ${id}` })),
    delete: (id) => send("DELETE", `${collection}/${id}`),
  };
  const counts: Record<string, StatementCount> = {};
  for (const [name, operate] of Object.entries(operations)) {
    // Prepares the statements.
    await operate(1_000);
    counts[name] = await countStatements(pool, async () => {
      for (let id = 1; id <= 200; id += 1) await operate(id);
      await allPublished(pool);
      return 200;
    });
  }
  return counts;
}
