import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { promisify } from "node:util";
import { expect } from "chai";
import { idsForLog, isForPeople } from "../../src/telemetry/log.ts";

const run = promisify(execFile);

/** Returns the output of a program that has a `log` with these options. */
async function output(options: string, program: string): Promise<string> {
  return (await run(process.execPath, argumentsOf(options, program))).stdout;
}

/** Returns the arguments with which Node.js runs such a program. */
function argumentsOf(options: string, program: string): string[] {
  const text = `
    import { createRequire } from "node:module";
    import { createLog } from ${JSON.stringify(new URL("../../src/telemetry/log.ts", import.meta.url).href)};
    const log = createLog(${options});
    const flushed = () => new Promise((resolve) => log.flush(() => resolve()));
    ${program}
    await flushed();
    process.exit();`;
  return ["--import", "tsx", "--input-type=module", "-e", text];
}

const messagesOf = (stdout: string): readonly string[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly msg: string }).msg);

describe("createLog", () => {
  it("has written every line, in order, when flush calls back", async () => {
    const stdout = await output(
      '{ level: "info" }',
      `for (const msg of ["one", "two", "three"]) log.info(msg);
       await flushed();
       console.log('{"msg":"written past the log"}');
       log.info("four");`,
    );

    expect(messagesOf(stdout)).to.deep.equal(["one", "two", "three", "written past the log", "four"]);
  });

  it("removes possible secrets from every line", async () => {
    const stdout = await output(
      '{ level: "info" }',
      `log.info({ url: "canary", authorization: "canary", request: { headers: { cookie: "canary" } }, count: 1 }, "one");
       log.child({ token: "canary" }).info({ webhook: { secret: "canary", url: "canary" } }, "two");`,
    );

    expect(messagesOf(stdout)).to.deep.equal(["one", "two"]);
    expect(stdout).to.include('"count":1').and.not.include("canary");
  });

  it("removes all fields of an error except its name, codes and frames", async () => {
    const stdout = await output(
      '{ level: "info" }',
      `const err = Object.assign(new Error("refused"), { code: "23505", detail: "canary", client: { password: "canary" } });
       log.error({ err }, "one");
       log.error(Object.assign(new Error("alone"), { detail: "canary" }));`,
    );

    expect(stdout).to.include('"code":"23505"').and.include("alone").and.not.include("canary");
  });

  it("writes text for people, in order with other output", async () => {
    const stdout = await output(
      '{ level: "info", isPretty: true }',
      `log.info({ count: 1 }, "one");
       await flushed();
       console.log("written past the log");`,
    );

    expect(stdout).to.match(/^\[.*INFO.*one.*count.*\nwritten past the log\n$/);
  });

  it("keeps 8 MB of lines that no program reads, and then tells how many were lost", async function () {
    this.timeout(20_000);
    const program = `
      for (let line = 0; line < 20_000; line += 1) log.info("x".repeat(1_000));
      console.error("written");
      await flushed();`;
    const child = spawn(process.execPath, argumentsOf('{ level: "info" }', program));
    await once(child.stderr, "data");

    const messages = messagesOf((await child.stdout.toArray()).join(""));

    const kept = messages.filter((msg) => msg.startsWith("x")).length;
    expect(kept).to.be.within(7_000, 8_000);
    expect(messages.at(-1)).to.equal(
      "lines of the log were lost, because no program read them, or the disk was full",
    );
  });

  it("goes on while the disk of the log is full", async () => {
    const program = `
      log.info("one");
      await new Promise((resolve) => setTimeout(resolve, 100));
      log.info("two");
      process.stderr.write("goes on", () => process.kill(process.pid, "SIGKILL"));`;
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, argumentsOf('{ level: "info" }', program), {
      stdio: ["ignore", full, "pipe"],
      timeout: 10_000,
    });
    closeSync(full);

    expect((await child.stderr?.toArray())?.join("")).to.equal("goes on");
  });

  it("loads no package for people where machines read", async () => {
    const loaded = `console.log(Object.keys(createRequire("/").cache).filter((path) => path.includes("pino-pretty")).length);`;

    expect(await output('{ level: "info" }', loaded)).to.equal("0\n");
    expect(Number(await output('{ level: "info", isPretty: true }', loaded))).to.be.above(0);
  });
});

describe("isForPeople", () => {
  for (const { what, stream, env, answer } of [
    { what: "a terminal", stream: { isTTY: true }, env: {}, answer: true },
    { what: "a pipe", stream: {}, env: {}, answer: false },
    { what: "a build with a terminal", stream: { isTTY: true }, env: { CI: "true" }, answer: false },
    { what: "production", stream: { isTTY: true }, env: { NODE_ENV: "production" }, answer: false },
  ])
    it(`is ${answer} for ${what}`, () => {
      expect(isForPeople(stream, env)).to.equal(answer);
    });
});

describe("idsForLog", () => {
  const ids = Array.from({ length: 21 }, (_, index) => String(index));

  it("gives 20 ids as they are", () => {
    expect(idsForLog(ids.slice(0, 20))).to.deep.equal(ids.slice(0, 20));
  });

  it("cuts more than 20, and gives the number left out", () => {
    expect(idsForLog(ids)).to.deep.equal([...ids.slice(0, 19), "and 2 more"]);
  });
});
