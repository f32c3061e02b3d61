/** Preloaded into a program by bench/memory.ts: writes what its memory holds to MEMORY_PROBE_FILE after SIGUSR2. */
import { readFileSync, writeFileSync } from "node:fs";
import { getHeapSpaceStatistics } from "node:v8";

/** Memories of WebAssembly, by the module that made them. */
const memories = [];
const callerOf = () =>
  /node_modules\/((?:@[^/]+\/)?[^/]+)|dist\/([\w/-]+)\.js/.exec(
    new Error().stack?.split("\n").slice(3).join("\n") ?? "",
  )?.[0] ?? "unknown";
const note = (instance, caller) => {
  for (const value of Object.values(instance.exports))
    if (value instanceof WebAssembly.Memory) memories.push({ memory: value, caller });
};
const { Instance, instantiate } = WebAssembly;
WebAssembly.Instance = class extends Instance {
  constructor(...args) {
    super(...args);
    note(this, callerOf());
  }
};
WebAssembly.instantiate = async (...args) => {
  const caller = callerOf();
  const result = await instantiate.apply(WebAssembly, args);
  note(result instanceof Instance ? result : result.instance, caller);
  return result;
};

const megabytes = (bytes) => Math.round((bytes / 1024 ** 2) * 10) / 10;

process.on("SIGUSR2", () => {
  globalThis.gc?.();
  const status = readFileSync("/proc/self/status", "utf8");
  const of = (name) => megabytes(1024 * Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]));
  const { heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  writeFileSync(
    process.env.MEMORY_PROBE_FILE,
    JSON.stringify({
      rss: of("VmRSS"),
      "rss of files": of("RssFile"),
      "rss of memory": of("RssAnon"),
      heapTotal: megabytes(heapTotal),
      heapUsed: megabytes(heapUsed),
      external: megabytes(external),
      arrayBuffers: megabytes(arrayBuffers),
      spaces: Object.fromEntries(
        getHeapSpaceStatistics().map((one) => [one.space_name, megabytes(one.physical_space_size)]),
      ),
      wasm: memories.map(({ memory, caller }) => `${caller} ${megabytes(memory.buffer.byteLength)}`),
    }),
  );
});
