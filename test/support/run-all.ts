/**
 * Runs every test, three portions of them side by side. Each of the three has its own private
 * servers, which later portions in its place use too. One of the first three consists of tests that
 * almost only wait. Tests that only compute are a further portion, of low priority, which uses the
 * processor while the others wait. With given servers, one portion runs after the other.
 *
 * The first portion prints its progress, the others print at the end. Options are passed on to
 * mocha.
 *
 * When a few tests failed, their files run once more, with nothing beside them. Tests that pass
 * then are reported as unsteady. An unsteady test needs a correction: most often it waits too
 * briefly for a busy machine. A test that fails twice fails the run.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { makeTemplate, templateVariable } from "./embedded.ts";
import { startPrivatePostgres } from "./postgres.ts";
import { memoryFolder, type PrivateServer } from "./private-process.ts";
import { startPrivateRabbitMq } from "./rabbitmq.ts";

const options = process.argv.slice(2);
const isShared = ["TEST_DATABASE_URL", "TEST_AMQP_URL"].some((name) => process.env[name] !== undefined);

const files = (await readdir("test", { recursive: true }))
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => `test/${name}`)
  .toSorted();
/** Folders of tests that compute and have no waits with a time limit. */
const computing =
  /^test\/((architecture|comments|patterns|resources\/rules-cost)\.test\.ts|mapping\/|querying\/|validation\/)/;
/** Tests that mostly wait: for a limit, or for a server that starts or hangs. */
const waiting =
  /^test\/(broker\/(own-server|swallowed)|db\/swallowed|events\/relay-(again|rest|slow)|journey\/(hanging-receivers|receiver-concurrency|reload-servers|start-order|stop)|migration\/locks)\.test\.ts$/;
const computingFiles = files.filter((file) => computing.test(file));
const waitingFiles = files.filter((file) => waiting.test(file));
const otherFiles = files.filter((file) => !computing.test(file) && !waiting.test(file));
/**
 * Returns the portion of a file: two large portions of eight files in twenty each, and four of one
 * file in twenty each, for the process that ends first. Loading the code of a portion takes some 3
 * s of CPU. Files alternate, because the slow files of a folder are next to each other.
 */
function portionOf(index: number): number {
  const turn = index % 20;
  if (turn < 8) return 0;
  return turn < 16 ? 1 : turn - 14;
}
const portions = Array.from({ length: 6 }, (_, portion) =>
  otherFiles.filter((_file, index) => portionOf(index) === portion),
);
portions.splice(2, 0, waitingFiles);
if (isShared) portions.push(computingFiles);

interface Run {
  /** Output of mocha on both channels. */
  readonly printed: string;
  readonly warnings: string;
  readonly isFailed: boolean;
  /** The failed tests, without failed hooks. */
  readonly failures: readonly Failure[];
}

interface Failure {
  readonly file: string;
  readonly title: string;
}

/** With more failures, something is broken. */
const mostUnsteady = 3;

/** Aborted by a signal that ends this process: running portions are ended, and no other begins. */
const stopping = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort());

/**
 * Runs a portion. A live portion prints its progress.
 *
 * @param servers Variables that name servers; without them, the portion starts its own.
 * @param behind Until these have ended, they have priority for the processor, and tests of this
 *   portion may take long.
 */
async function run(
  portion: readonly string[],
  {
    isLive,
    servers = {},
    behind,
  }: {
    readonly isLive: boolean;
    readonly servers?: Readonly<Record<string, string>>;
    readonly behind?: Promise<unknown>;
  },
): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-failures-"));
  const failuresFile = join(folder, "failures");
  writeFileSync(failuresFile, "");
  const limit = behind === undefined ? [] : ["--timeout", "600000"];
  const args = ["node_modules/mocha/bin/mocha.js", ...limit, ...options, ...portion];
  const mocha = spawn(process.execPath, args, {
    detached: behind !== undefined,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      // Node.js 20 reads the file at each start, which takes 55 ms of CPU for 140 certificates.
      // Tests connect only to this machine.
      NODE_EXTRA_CA_CERTS: undefined,
      ...servers,
      [templateVariable]: await template,
      SVC_TEST_FAILURES: failuresFile,
      ...(process.stdout.isTTY && { FORCE_COLOR: "1" }),
    },
  });
  if (behind !== undefined && mocha.pid !== undefined) void yieldTo(behind, mocha.pid);
  const end = (): void => void mocha.kill("SIGTERM");
  stopping.signal.addEventListener("abort", end);
  if (isLive) {
    mocha.stdout.pipe(process.stdout, { end: false });
    mocha.stderr.pipe(process.stderr, { end: false });
  }
  const closed = new Promise<boolean>((resolve) => mocha.once("close", (code) => resolve(code !== 0)));
  const [printed, warnings] = await Promise.all([text(mocha.stdout), text(mocha.stderr)]);
  const isFailed = await closed;
  const lines = readFileSync(failuresFile, "utf8").split("\n").filter(Boolean);
  rmSync(folder, { recursive: true });
  return { printed, warnings, isFailed, failures: lines.map((line) => JSON.parse(line) as Failure) };
}

/**
 * Gives a process a tenth of the weight of others until these have ended: by its nice value, and by
 * that of its session, which Linux weighs first.
 */
async function yieldTo(others: Promise<unknown>, pid: number): Promise<void> {
  const session = `/proc/${pid}/autogroup`;
  const weigh = (nice: number): Promise<void> => writeFile(session, String(nice)).catch(() => undefined);
  setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  await weigh(constants.priority.PRIORITY_BELOW_NORMAL);
  await others;
  await weigh(0);
}

/**
 * Returns mocha's counts, and the failed tests. Without counts, the last lines show how the run
 * ended.
 */
function summaryOf({ printed, isFailed }: Run): { passed: number; failed: number; text: string } {
  const plain = stripVTControlCharacters(printed);
  const start = plain.search(/^ +\d+ passing/m);
  const summary = start === -1 ? plain.slice(-2_000) : plain.slice(start);
  const count = (word: string): number =>
    Number(new RegExp(`^ +(\\d+) ${word}`, "m").exec(summary)?.[1] ?? 0);
  return {
    passed: count("passing"),
    failed: Math.max(count("failing"), isFailed ? 1 : 0),
    text: summary.trimEnd(),
  };
}

const queue = portions.entries();
const runs: Run[] = [];

/**
 * Runs portions one after the other until none is left, on servers that it starts and ends.
 */
async function runQueue(): Promise<void> {
  const started = isShared ? [] : await startServers();
  const [postgres, rabbitMq] = started;
  const servers = {
    ...(postgres !== undefined && { TEST_DATABASE_URL: postgres.url }),
    ...(rabbitMq !== undefined && { TEST_AMQP_URL: rabbitMq.url }),
  };
  try {
    await template;
    for (const [place, portion] of queue) {
      if (stopping.signal.aborted) return;
      runs[place] = await run(portion, { isLive: place === 0, servers });
    }
  } finally {
    for (const server of started) await server.dispose();
  }
}

/** Starts a PostgreSQL and a RabbitMQ. When one does not start, ends the other. */
async function startServers(): Promise<readonly PrivateServer[]> {
  const starts = await Promise.allSettled([
    startPrivatePostgres({ parent: memoryFolder }),
    startPrivateRabbitMq({ parent: memoryFolder }),
  ]);
  const servers = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  for (const start of starts) {
    if (start.status === "fulfilled") continue;
    for (const server of servers) await server.dispose();
    throw start.reason;
  }
  return servers;
}

/** Runs the computing portion, on a PostgreSQL of normal weight. */
async function runComputing(behind: Promise<unknown>): Promise<void> {
  const postgres = await startPrivatePostgres({ parent: memoryFolder });
  const servers = { TEST_DATABASE_URL: postgres.url };
  try {
    await template;
    if (stopping.signal.aborted) return;
    runs[portions.length] = await run(computingFiles, { isLive: false, servers, behind });
  } finally {
    await postgres.dispose();
  }
}

/** Made while the servers start. */
const template = makeTemplate(memoryFolder).then((folder) => {
  process.once("exit", () => rmSync(folder, { recursive: true }));
  return folder;
});
const lanes = Array.from({ length: isShared ? 1 : 3 }, runQueue);
const work: readonly Promise<unknown>[] = [
  template,
  ...lanes,
  ...(isShared ? [] : [runComputing(Promise.allSettled(lanes))]),
];
await Promise.all(work).catch(async (error: unknown) => {
  // Ends the running portions, and waits: a server that is still starting would leave its folder.
  stopping.abort();
  await Promise.allSettled(work);
  throw error;
});
// After a signal, the portions that did not begin are gaps: `flat` removes them.
for (const { printed, warnings } of runs.slice(1).flat()) process.stdout.write(warnings + printed);
const summaries = runs.flat().map(summaryOf);
// Prints all faults last: a log is read from its end, and often only the end is kept.
process.stdout.write(`\nThe portions:\n\n${summaries.map((summary) => summary.text).join("\n\n")}\n\n`);
const sumOf = (key: "passed" | "failed"): number => summaries.reduce((sum, one) => sum + one[key], 0);
const failed = sumOf("failed");
process.stdout.write(`${sumOf("passed")} passed, ${failed} failed\n`);
if (failed > 0) process.exitCode = (await areUnsteady(runs.flatMap(({ failures }) => failures))) ? 0 : 1;
if (stopping.signal.aborted) process.exitCode = 1;

/** Runs the files of the failed tests once more. */
async function areUnsteady(failures: readonly Failure[]): Promise<boolean> {
  // Every failure is that of a test, not of a hook or of mocha itself.
  if (stopping.signal.aborted || failures.length !== failed || failed > mostUnsteady) return false;
  const again = [...new Set(failures.map(({ file }) => file))];
  process.stdout.write(`\nOnce more, alone: ${again.join(", ")}\n`);
  if ((await run(again, { isLive: true })).isFailed) return false;
  for (const { file, title } of failures) process.stdout.write(`UNSTEADY, passed alone: ${file}: ${title}\n`);
  return true;
}
