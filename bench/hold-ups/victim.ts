/**
 * A user who must not be affected by the hold-up, in a separate process. It makes changes at a
 * constant rate, through the API and by SQL in turn, receives them, and reports times and losses.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { messageOf } from "../../src/kit/errors.ts";
import { request } from "../../test/support/service.ts";
import { spreadOf, type Spread } from "../numbers.ts";
import { answerQuestions } from "../peer.ts";
import type { Phase } from "./phases.ts";

export type VictimQuestion =
  /** Returns the port for the subscription. */
  | { readonly kind: "open" }
  | { readonly kind: "begin"; readonly job: VictimJob }
  /** Changes from now on count for this phase. */
  | { readonly kind: "phase"; readonly phase: Phase }
  /** Stops, waits until everything has arrived, and returns a report. */
  | { readonly kind: "end"; readonly limitMs: number };

export interface VictimJob {
  readonly notesUrl: string;
  readonly token: string;
  readonly userId: number;
  readonly databaseUrl: string;
  readonly ratePerSecond: number;
}

interface PhaseReport {
  /** Time from just before a change was sent to its receipt, for all changes that arrived. */
  readonly latencyMs: Spread;
  /** Changes that were acknowledged. */
  readonly made: number;
  /** Number of these that arrived before the end of the phase. */
  readonly cameMeanwhile: number;
}

export interface VictimAnswer {
  readonly port: number;
  readonly phases: Readonly<Record<Phase, PhaseReport>>;
  /** Changes that were refused, by status or message. */
  readonly failures: Readonly<Record<string, number>>;
  /** Acknowledged, but never received. */
  readonly lost: number;
  /** Received more than once. */
  readonly doubled: number;
}

interface Change {
  readonly phase: Phase;
  readonly madeAt: number;
  isAcknowledged: boolean;
  cameAt?: number;
}

const changes = new Map<string, Change>();
const endOf = new Map<Phase, number>();
const failures: Record<string, number> = {};
const writing = new Set<Promise<void>>();
let phase: Phase = "before";
let doubled = 0;
let timer: NodeJS.Timeout | undefined;
let pool: Pool | undefined;

const server = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
  const cameAt = performance.now();
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.on("end", () => {
    response.writeHead(204).end();
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { readonly data: { readonly text: string } };
    const change = changes.get(body.data.text);
    if (change === undefined) return;
    if (change.cameAt === undefined) change.cameAt = cameAt;
    else doubled += 1;
  });
});
const listening = new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

async function write(job: VictimJob): Promise<void> {
  const text = `victim ${process.pid} ${changes.size + 1}`;
  const change: Change = { phase, madeAt: performance.now(), isAcknowledged: false };
  changes.set(text, change);
  try {
    if (changes.size % 2 === 0)
      await pool?.query("INSERT INTO notes (text, user_id) VALUES ($1, $2)", [text, job.userId]);
    else {
      const { status } = await request({
        url: job.notesUrl,
        method: "POST",
        token: job.token,
        body: { text },
      });
      if (status !== 201) throw new Error(String(status));
    }
    change.isAcknowledged = true;
  } catch (error) {
    const what = messageOf(error);
    failures[what] = (failures[what] ?? 0) + 1;
  }
}

function begin(job: VictimJob): void {
  pool = new Pool({ connectionString: job.databaseUrl, max: 4 });
  pool.on("error", () => undefined);
  timer = setInterval(() => {
    const written = write(job).finally(() => writing.delete(written));
    writing.add(written);
  }, 1000 / job.ratePerSecond);
}

const missing = (): number =>
  [...changes.values()].filter(({ isAcknowledged, cameAt }) => isAcknowledged && cameAt === undefined).length;

async function end(limitMs: number): Promise<void> {
  endOf.set(phase, performance.now());
  clearInterval(timer);
  await Promise.all(writing);
  for (const endsAt = performance.now() + limitMs; missing() > 0 && performance.now() < endsAt;)
    await sleep(20);
  await pool?.end();
}

function reportOf(wanted: Phase): PhaseReport {
  const made = [...changes.values()].filter((change) => change.phase === wanted && change.isAcknowledged);
  const came = made.flatMap(({ madeAt, cameAt }) => (cameAt === undefined ? [] : [{ madeAt, cameAt }]));
  return {
    latencyMs: spreadOf(came.map(({ madeAt, cameAt }) => cameAt - madeAt)),
    made: made.length,
    cameMeanwhile: came.filter(({ cameAt }) => cameAt <= (endOf.get(wanted) ?? Number.POSITIVE_INFINITY))
      .length,
  };
}

answerQuestions(async (question: VictimQuestion): Promise<VictimAnswer> => {
  await listening;
  if (question.kind === "begin") begin(question.job);
  else if (question.kind === "phase") {
    endOf.set(phase, performance.now());
    phase = question.phase;
  } else if (question.kind === "end") await end(question.limitMs);
  return {
    port: (server.address() as AddressInfo).port,
    phases: { before: reportOf("before"), during: reportOf("during"), after: reportOf("after") },
    failures,
    lost: missing(),
    doubled,
  };
});
