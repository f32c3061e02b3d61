/**
 * Shows the contents of the memory of `svc api` and `svc dispatcher`, at rest and after a load:
 * `node --import tsx bench/memory.ts`, two minutes. Figures are in MB, after a garbage collection.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../test/support/wait.ts";
import { openSubscribed } from "./deliveries.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { startPeer } from "./peer.ts";
import { startProgram, type Program } from "./program.ts";
import { createRequest, listRequest } from "./request-specs.ts";
import { progress, runToEnd, type AtEnd } from "./run-to-end.ts";
import { prepareSurroundings } from "./surroundings.ts";

const fileOf = (name: string): string => join(tmpdir(), `svc-memory-${process.pid}-${name}.json`);

async function report(title: string, programs: Readonly<Record<string, Program>>): Promise<void> {
  for (const [name, { pid }] of Object.entries(programs)) {
    const file = fileOf(name);
    rmSync(file, { force: true });
    process.kill(pid, "SIGUSR2");
    await until(() => existsSync(file), { what: `the memory of svc ${name}` });
    await sleep(100);
    console.log(`\n${title}: svc ${name}`);
    for (const [what, value] of Object.entries(JSON.parse(readFileSync(file, "utf8")) as object))
      console.log(`  ${what}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
    rmSync(file);
  }
}

async function main(atEnd: AtEnd): Promise<number> {
  const surroundings = await prepareSurroundings({ records: 10_000, atEnd });
  const databaseUrl = await surroundings.copyDatabase("svc_memory");
  const generator = startPeer<LoadJob, LoadResult>("load.ts");
  atEnd(() => generator.end());
  const start = (name: "api" | "dispatcher"): Promise<Program> => {
    const env = {
      NODE_OPTIONS: `--expose-gc --import ${import.meta.dirname}/memory-probe.mjs`,
      MEMORY_PROBE_FILE: fileOf(name),
    };
    return startProgram({ surroundings, atEnd }, name, { databaseUrl, env });
  };
  const programs = { api: await start("api"), dispatcher: await start("dispatcher") };
  await sleep(5_000);
  await report("at rest", programs);
  const { token } = surroundings;
  const { port } = programs.api;
  const receiver = await openSubscribed({ surroundings, atEnd }, port);
  progress("20,000 creates and deliveries, 5,000 lists");
  const job = { port, token, connections: 16 };
  await generator.ask({ ...job, request: createRequest, count: 20_000 });
  await generator.ask({ ...job, request: listRequest, count: 5_000 });
  await receiver.ask({ kind: "wait", count: 20_000, limitMs: 300_000 });
  await report("after the load", programs);
  await sleep(30_000);
  await report("30 s later", programs);
  return 0;
}

await runToEnd(main);
