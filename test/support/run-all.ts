/**
 * Runs every test, in two halves side by side: much of the time, a test waits for a server or a clock. Each half has private servers of
 * its own. With servers from outside, which the halves would share, one runs after the other.
 *
 * The first half prints as it goes, the second one when both are through. Options are passed on to mocha.
 */
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { text } from "node:stream/consumers";

const options = process.argv.slice(2);
const isShared = ["TEST_DATABASE_URL", "TEST_AMQP_URL"].some((name) => process.env[name] !== undefined);

const files = (await readdir("test", { recursive: true }))
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => `test/${name}`)
  .toSorted();
// By turns, so that each half has as many of the long ones, which are side by side in a folder.
const [first, second] = [0, 1].map((half) => files.filter((_, index) => index % 2 === half));

/** Answers what is left to print, and the status. */
async function run(output: "inherit" | "pipe", half: readonly string[] = []): Promise<[string, number]> {
  const mocha = spawn(process.execPath, ["node_modules/mocha/bin/mocha.js", ...options, ...half], {
    stdio: ["ignore", output, output],
    env: { ...process.env, ...(process.stdout.isTTY && { FORCE_COLOR: "1" }) },
  });
  const end = (): void => void mocha.kill("SIGTERM");
  process.once("SIGTERM", end).once("SIGINT", end);
  const closed = new Promise<number>((resolve) => mocha.once("close", (code) => resolve(code ?? 1)));
  const printed = [mocha.stdout, mocha.stderr].map(async (stream) => (stream === null ? "" : text(stream)));
  return [(await Promise.all(printed)).join(""), await closed];
}

const runs = isShared
  ? [await run("inherit", first), await run("inherit", second)]
  : await Promise.all([run("inherit", first), run("pipe", second)]);
for (const [printed] of runs) process.stdout.write(printed);
process.exitCode = runs.some(([, code]) => code !== 0) ? 1 : 0;
