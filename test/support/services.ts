/**
 * The servers of the tests, as mocha's root hooks: `.mocharc.json` names this file under `require`.
 * Its `node-option` makes mocha import every file. Otherwise mocha requires the files that it can.
 * Files above a top-level await then get other modules, whose hooks mocha does not call.
 */
import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { canInstall } from "./apt.ts";
import { ensurePostgres, findPostgres, startPrivatePostgres } from "./postgres.ts";
import { leftFolders, memoryFolder, type PrivateServer } from "./private-process.ts";
import { removeTopology } from "./queues.ts";
import { ensureRabbitMq, findRabbitMq, startPrivateRabbitMq } from "./rabbitmq.ts";

const loaded = Symbol.for("test/support/services.ts");
if (loaded in globalThis) throw new Error("The hooks are of another instance of this module.");
Object.defineProperty(globalThis, loaded, { value: true });

let postgres: Promise<PrivateServer> | undefined;
let rabbitMq: Promise<PrivateServer> | undefined;
let isForeignBrokerUsed = false;
const atEnd: (() => Promise<void>)[] = [];

const foreignPostgres = process.env["TEST_DATABASE_URL"];
const foreignRabbitMq = process.env["TEST_AMQP_URL"];

/**
 * Returns the URL of a PostgreSQL that may create databases: `TEST_DATABASE_URL`, otherwise a
 * private server, started at the first call.
 */
export async function postgresUrl(): Promise<string> {
  if (foreignPostgres !== undefined) return foreignPostgres;
  postgres ??= startPrivatePostgres({ parent: memoryFolder });
  return (await postgres).url;
}

/**
 * Returns the URL of a RabbitMQ: `TEST_AMQP_URL`, otherwise a private server, started at the first
 * call.
 */
export async function amqpUrl(): Promise<string> {
  if (foreignRabbitMq !== undefined) {
    isForeignBrokerUsed = true;
    return foreignRabbitMq;
  }
  rabbitMq ??= startPrivateRabbitMq({ parent: memoryFolder });
  return (await rabbitMq).url;
}

/** Registers `clean` to run after all tests, while the servers still run. */
export function whenTestsEnd(clean: () => Promise<void>): void {
  atEnd.push(clean);
}

/**
 * Mocha calls this once, without a time limit, before the first test: an installation takes
 * minutes.
 */
export async function mochaGlobalSetup(): Promise<void> {
  endWithParent();
  if (!canInstall()) return;
  if (foreignPostgres === undefined && findPostgres() === undefined) await ensurePostgres();
  if (foreignRabbitMq === undefined && findRabbitMq() === undefined) await ensureRabbitMq();
}

/**
 * Ends this process when its parent has ended: `mocha` runs the tests in a child process, which
 * outlives a SIGTERM to `mocha`.
 */
function endWithParent(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.exit(1);
  }, 500).unref();
}

const failuresFile = process.env["SVC_TEST_FAILURES"];

export const mochaHooks = {
  /** Reports the failed tests to `run-all.ts`, a line of JSON each. */
  afterEach(this: Mocha.Context): void {
    const { currentTest: test } = this;
    if (failuresFile === undefined || test?.state !== "failed") return;
    const file = relative(process.cwd(), test.file ?? "");
    appendFileSync(failuresFile, `${JSON.stringify({ file, title: test.fullTitle() })}\n`);
  },
  async afterAll(): Promise<void> {
    for (const clean of atEnd) await clean();
    if (isForeignBrokerUsed && foreignRabbitMq !== undefined) await removeTopology(foreignRabbitMq);
    const servers = await Promise.allSettled([postgres, rabbitMq]);
    for (const server of servers) if (server.status === "fulfilled") await server.value?.dispose();
    const left = leftFolders();
    if (left.length > 0)
      throw new Error(`A test did not dispose of its private server in ${left.join(", ")}`);
  },
};
