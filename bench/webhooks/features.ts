import { familyCpuMicros, processCpuMicros } from "../cpu.ts";
import { callerOf, subscribe } from "../call-api.ts";
import { measureCapacity, openReceivers, type Amounts } from "../deliveries.ts";
import { medianOf } from "../numbers.ts";
import { startProgram } from "../program.ts";
import type { BenchContext } from "../requests.ts";

/** The cost of a delivery with a feature, relative to one without directly before. */
export interface FeatureResult {
  readonly feature: string;
  readonly perSecond: number;
  /** CPU of each delivery, in µs. */
  readonly dispatcherMicros: number;
  readonly postgresMicros: number;
  /** Median of the rounds, for deliveries a second and the dispatcher's CPU. */
  readonly rateRatio: number;
  readonly cpuRatio: number;
}

const rounds = 5;
const filter = { title: { starts_with: "Note" }, id: { gt: 0 } };
const headers = Object.fromEntries(
  Array.from({ length: 10 }, (_, at) => [`X-Own-${at}`, `value-${at}-${"x".repeat(40)}`]),
);
/** Each feature is added to the webhook, and removed again. */
const features = {
  "a filter of two conditions": [
    ["PUT", "", { filter }],
    ["PUT", "", { filter: null }],
  ],
  "two secrets": [
    ["POST", "/rotate-secret", { grace: 86_400 }],
    ["POST", "/rotate-secret", { grace: 0 }],
  ],
  "ten headers of its own": [
    ["PUT", "", { headers }],
    ["PUT", "", { headers: null }],
  ],
} as const;

function micros(amounts: Amounts, name: string): number {
  return amounts[name] ?? Number.NaN;
}

/** Inserts rows by SQL as fast as they can be delivered, with each feature and without, in turn. */
export async function measureFeatures(context: BenchContext): Promise<readonly FeatureResult[]> {
  const { surroundings, scale, progress } = context;
  const { token, userId, postgresPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_features");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram(context, "api", { databaseUrl });
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  const receiver = await openReceivers(context.atEnd);
  const callApi = callerOf({ port: api.port, token });
  const id = await subscribe(callApi, receiver.ports[0] ?? 0);
  const ask = ([method, path, body]: readonly [string, string, object]): Promise<unknown> =>
    callApi(method, `/svc-api/webhooks/${id}${path}`, body);
  const meters = {
    dispatcher: () => processCpuMicros(dispatcher.pid),
    postgresql: () => familyCpuMicros(postgresPid),
  };
  const count = Math.max(200, Math.round(2_000 * scale));
  const run = async (): Promise<{ readonly perSecond: number; readonly cpuMicros: Amounts }> =>
    measureCapacity({ pool, receiver, userId, meters, count });
  await run();
  const results: FeatureResult[] = [];
  for (const [feature, [put, remove]] of Object.entries(features)) {
    const pairs = [];
    for (let round = 0; round < rounds; round += 1) {
      progress(`deliveries with ${feature}, round ${round + 1} of ${rounds}`);
      const without = await run();
      await ask(put);
      pairs.push({ without, with: await run() });
      await ask(remove);
    }
    results.push({
      feature,
      perSecond: medianOf(pairs.map((pair) => pair.with.perSecond)),
      dispatcherMicros: medianOf(pairs.map((pair) => micros(pair.with.cpuMicros, "dispatcher"))),
      postgresMicros: medianOf(pairs.map((pair) => micros(pair.with.cpuMicros, "postgresql"))),
      rateRatio: medianOf(pairs.map((pair) => pair.with.perSecond / pair.without.perSecond)),
      cpuRatio: medianOf(
        pairs.map(
          (pair) => micros(pair.with.cpuMicros, "dispatcher") / micros(pair.without.cpuMicros, "dispatcher"),
        ),
      ),
    });
  }
  await dispatcher.stop();
  await api.stop();
  receiver.end();
  return results;
}
