import type { Pool } from "pg";
import { purgeQueues } from "../test/support/queues.ts";
import { until } from "../test/support/wait.ts";
import type { BaselineAnswer, BaselineQuestion } from "./baseline/server.ts";
import { compare, type Comparison, type Generator, type Requests, type Side } from "./compare.ts";
import { processCpuMicros } from "./cpu.ts";
import type { RequestSpec } from "./load.ts";
import { startPeer } from "./peer.ts";
import { startProgram, type Surrounded } from "./program.ts";
import {
  batchBody,
  batchRequest,
  collections,
  createRequest,
  filteredPath,
  listRequest,
  noteBody,
  orderBody,
  orderRequests,
  pagesRequest,
  showRequest,
  taskRequests,
} from "./request-specs.ts";
import { poolSize, publicUrl } from "./surroundings.ts";

/** The context of every part of a run. */
export interface BenchContext extends Surrounded {
  readonly generator: Generator;
  /** Factor for all sizes and durations. */
  readonly scale: number;
  readonly progress: (text: string) => void;
}

export interface RequestResults {
  /** Compared with the handwritten server. */
  readonly comparisons: readonly Comparison[];
  /** With a rule of access, compared with no rule. */
  readonly access: readonly Comparison[];
  /** With a log line for each request, compared with no log. */
  readonly logging: Comparison;
}

type Run = (
  name: string,
  sides: readonly [Side, Side],
  requests: Requests,
  pairs?: number,
  warmUps?: number,
) => Promise<Comparison>;

interface Stage {
  readonly context: BenchContext;
  readonly databaseUrl: string;
  readonly service: Side;
  readonly baseline: Side;
  readonly run: Run;
}

/** Number of pairs for the three main rows, and for the others. */
const manyPairs = 5;
const fewPairs = 3;
/** V8 compiles the code of a request during its first few thousand runs. */
const fewWarmUps = 3;

/** Compares requests with the handwritten server, and with the service itself without a feature. */
export async function measureRequests(context: BenchContext): Promise<RequestResults> {
  const { surroundings } = context;
  const { token } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_requests");
  const pool = surroundings.connect(databaseUrl);
  const baseline = await startBaseline(context);
  const run = runIn(context);
  const lonely = await startProgram(context, "api", { databaseUrl });
  const service: Side = { name: "svc api", port: lonely.port, pid: lonely.pid };
  await expectSameAnswers({ service, baseline, token });
  const stage = { context, databaseUrl, service, baseline, run };

  const reads = await compareReads(stage);
  const [with_, without] = [taskRequests(collections.tasks), taskRequests(collections.openTasks)];
  const same = [
    { ...service, name: "with" },
    { ...service, name: "without" },
  ] as const;
  const access = [
    await run("A list of 15, with a team's rule of access", same, [with_.list, without.list], fewPairs),
    await run("A single record, likewise", same, [with_.show, without.show], fewPairs),
    await run("A create, likewise", same, [with_.create, without.create], fewPairs),
  ];
  // The same program with a log line for every request, the default.
  const talkative = await startProgram(context, "api", { databaseUrl, logLevel: "info" });
  const logging = await run(
    "A single record, with a log line",
    [{ name: "with", port: talkative.port, pid: talkative.pid }, same[1]],
    showRequest,
    fewPairs,
  );
  await talkative.stop();
  // Without a dispatcher, the relay stops at a full window and the events stay, as on the other
  // side.
  const creates = [
    await run("A create, its event left to be published", [service, baseline], createRequest),
    await run("An order by a create, likewise", [service, baseline], orderRequests.create, fewPairs),
    await run("A batch of 100 creates, likewise", [service, baseline], batchRequest, fewPairs),
  ];
  await purgeQueues(surroundings.amqpUrl);
  await pool.query("TRUNCATE svc.outbox");
  creates.push(await compareWholeCreate(stage, pool));
  await lonely.stop();
  return { comparisons: [...reads, ...creates], access, logging };
}

function runIn({ surroundings, generator, progress, scale }: BenchContext): Run {
  const { token, postgresPid } = surroundings;
  return (name, sides, requests, pairs = manyPairs, warmUps = fewWarmUps) => {
    progress(`${name}: ${sides[0].name} and ${sides[1].name}`);
    const blockMs = (pairs === manyPairs ? 2_500 : 2_000) * scale;
    return compare({ name, sides, requests, generator, token, postgresPid, pairs, blockMs, warmUps });
  };
}

async function compareReads({ context, service, baseline, run }: Stage): Promise<readonly Comparison[]> {
  const { token } = context.surroundings;
  const sides = [service, baseline] as const;
  const filtered = async ({ port }: Side): Promise<RequestSpec> => {
    const { next_cursor: cursor } = (await (
      await fetch(`http://127.0.0.1:${port}${filteredPath}`, {
        headers: { authorization: `Bearer ${token}` },
      })
    ).json()) as { readonly next_cursor: string };
    return { method: "GET", path: filteredPath + cursor, status: 200 };
  };
  return [
    await run("A list of 15", sides, listRequest),
    await run("A list of 15, one of 20 pages", sides, pagesRequest, fewPairs),
    await run("A single record", sides, showRequest),
    await run(
      "A page by cursor, filtered and sorted",
      sides,
      [await filtered(service), await filtered(baseline)],
      fewPairs,
    ),
    await run("A list of 15 orders, with their customers", sides, orderRequests.list, fewPairs),
    await run("A single order, with its customer", sides, orderRequests.show, fewPairs),
  ];
}

/**
 * Compares creates whose events are published and fanned out at the same time, without subscribers,
 * on the same machine.
 */
async function compareWholeCreate(
  { context, databaseUrl, service, baseline, run }: Stage,
  pool: Pool,
): Promise<Comparison> {
  const { surroundings } = context;
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  const side: Side = {
    ...service,
    settle: () => allPublished(pool),
    others: {
      dispatcher: () => processCpuMicros(dispatcher.pid),
      rabbitmq: () => processCpuMicros(surroundings.rabbitMqPid),
    },
  };
  const comparison = await run(
    "A create, its event published and fanned out meanwhile",
    [side, baseline],
    createRequest,
  );
  await dispatcher.stop();
  return comparison;
}

async function startBaseline({ surroundings, atEnd }: BenchContext): Promise<Side> {
  const databaseUrl = await surroundings.copyDatabase("svc_baseline");
  const peer = startPeer<BaselineQuestion, BaselineAnswer>("baseline/server.ts");
  atEnd(() => peer.end());
  const { port } = await peer.ask({ databaseUrl, poolSize, publicUrl });
  return { name: "by hand", port, pid: peer.pid };
}

export async function allPublished(pool: Pool): Promise<void> {
  const text = "SELECT NOT EXISTS (SELECT FROM svc.outbox) AS done";
  await until(async () => (await pool.query<{ readonly done: boolean }>(text)).rows[0]?.done, {
    what: "the relay and the fan-out to be done with every event",
    timeoutMs: 120_000,
  });
}

/** Throws when the two servers answer differently, because the comparison would be meaningless. */
async function expectSameAnswers({
  service,
  baseline,
  token,
}: {
  readonly service: Side;
  readonly baseline: Side;
  readonly token: string;
}): Promise<void> {
  const answerOf = async (
    { port }: Side,
    [method, path, body]: readonly [string, string, string?],
  ): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    // Each side has its own cursor.
    if (path === filteredPath)
      return `${response.status} ${JSON.stringify((JSON.parse(text) as { readonly data: unknown }).data)}`;
    // The times of a new record are those of its creation.
    const times = /"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"/g;
    return `${response.status} ${method === "POST" ? text.replaceAll(times, "now") : text}`;
  };
  const { notes, orders } = collections;
  for (const question of [
    ["GET", `${notes}?page=3`],
    ["GET", `${notes}/77`],
    ["GET", filteredPath],
    ["GET", `${orders}?page=3`],
    ["GET", `${orders}/77`],
    // Their times differ, so reads come first.
    ["POST", notes, noteBody],
    ["POST", `${notes}/batch`, batchBody],
    ["POST", orders, orderBody],
  ] as const) {
    const [one, other] = [await answerOf(service, question), await answerOf(baseline, question)];
    if (one !== other)
      throw new Error(
        `${question[0]} ${question[1]} is answered differently:\n${one.slice(0, 800)}\n${other.slice(0, 800)}`,
      );
  }
}
