/**
 * Profiles `svc api` under each kind of request, and prints where its CPU time goes: `node --import
 * tsx bench/profile.ts [list|show|create|order|batch]`. The generator runs at full speed with 16
 * connections, and a dispatcher runs too.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LoadJob, LoadResult, RequestSpec } from "./load.ts";
import { startPeer } from "./peer.ts";
import { startProgram } from "./program.ts";
import { batchRequest, createRequest, listRequest, orderRequests, showRequest } from "./request-specs.ts";
import type { BenchContext } from "./requests.ts";
import { progress, runToEnd, type AtEnd } from "./run-to-end.ts";
import { prepareSurroundings } from "./surroundings.ts";

const requests: Readonly<Record<string, RequestSpec>> = {
  list: listRequest,
  show: showRequest,
  create: createRequest,
  order: orderRequests.create,
  batch: batchRequest,
};

const durationMs = 15_000;

/** Lines and columns count from 0. */
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

async function main(atEnd: AtEnd): Promise<number> {
  const surroundings = await prepareSurroundings({ records: 10_000, atEnd });
  const generator = startPeer<LoadJob, LoadResult>("load.ts");
  atEnd(() => generator.end());
  const context = { surroundings, generator, scale: 1, atEnd, progress };
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(requests);
  for (const name of names) await profile(name, context);
  return 0;
}

async function profile(name: string, context: BenchContext): Promise<void> {
  const request = requests[name];
  if (request === undefined) throw new Error(`${name}: expected ${Object.keys(requests).join(", ")}`);
  const { surroundings, generator } = context;
  const databaseUrl = await surroundings.copyDatabase(`svc_profile_${name}`);
  const profileDir = mkdtempSync(join(tmpdir(), "svc-profile-"));
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  const api = await startProgram(context, "api", { databaseUrl, profileDir });
  const job = { port: api.port, token: surroundings.token, request, connections: 16, durationMs };
  const { count: done } = await generator.ask(job);
  await api.stop();
  await dispatcher.stop();
  const [file = ""] = readdirSync(profileDir);
  print(name, done, JSON.parse(readFileSync(join(profileDir, file), "utf8")) as Profile);
  rmSync(profileDir, { recursive: true });
}

function print(name: string, done: number, { nodes, samples, timeDeltas }: Profile): void {
  const self = new Map<number, number>();
  samples.forEach((id, index) => self.set(id, (self.get(id) ?? 0) + (timeDeltas[index] ?? 0)));
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  const visit = (id: number, part: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const { file, line } = placeOf(node.callFrame);
    const own = partOf(file) ?? part;
    const micros = self.get(id) ?? 0;
    parts.set(own, (parts.get(own) ?? 0) + micros);
    const label = `${node.callFrame.functionName || "(anonymous)"} ${file.replace(/^.*\/(node_modules|src)\//, "")}:${line + 1}`;
    functions.set(label, (functions.get(label) ?? 0) + micros);
    for (const child of node.children ?? []) visit(child, own);
  };
  const byId = new Map(nodes.map((node) => [node.id, node]));
  visit(nodes[0]?.id ?? 0, "(program)");
  console.log(`\n${name}: ${done} requests; CPU us a request`);
  table(parts, done, 24);
  console.log("functions by their own time");
  table(functions, done, 30);
}

const maps = new Map<string, SourceMap | undefined>();

/** Returns the place of the function in the sources of its bundle. */
function placeOf({ url, lineNumber, columnNumber }: CallFrame): { file: string; line: number } {
  if (!maps.has(url)) {
    const file = url.startsWith("file:") ? `${fileURLToPath(url)}.map` : "";
    const text = existsSync(file) ? readFileSync(file, "utf8") : undefined;
    maps.set(url, text === undefined ? undefined : new SourceMap(JSON.parse(text) as SourceMapPayload));
  }
  const entry = maps.get(url)?.findEntry(lineNumber, columnNumber);
  if (entry === undefined || !("originalSource" in entry)) return { file: url, line: lineNumber };
  return { file: entry.originalSource, line: entry.originalLine };
}

/**
 * Returns the package, or the folder of the service; undefined for Node.js itself, whose time
 * counts for its caller.
 */
function partOf(url: string): string | undefined {
  const modules = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url);
  if (modules !== null) return modules[1];
  return /\/src\/([^/]+\/[^/]+)\.ts/.exec(url)?.[1];
}

function table(micros: ReadonlyMap<string, number>, done: number, most: number): void {
  const rows = [...micros].filter(([name]) => !name.startsWith("(idle)")).toSorted(([, a], [, b]) => b - a);
  for (const [name, total] of rows.slice(0, most))
    console.log(`${(total / done).toFixed(1).padStart(8)}  ${name}`);
}

await runToEnd(main);
