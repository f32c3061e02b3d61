import { expect } from "chai";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { until } from "../support/wait.ts";

/** Records its arguments, and acts as the variables say. */
const stub = `#!/bin/sh
step=$(basename "$0")
case $step in npm | node) for step; do :; done ;; esac
step=$(basename -- "$step")
echo "said by $step"
echo "$step" >>steps
case " $HANGING " in
  # A signal to all is lost on a sleep that has only just begun.
  *" $step "*) trap 'sleep 0.2; kill $! 2>/dev/null; echo "end of $step"; exit 1' TERM; sleep 100 & wait ;;
esac
case $step in
  $FAILING) exit 1 ;;
  $SLOW) sleep 0.5; echo "end of $step" >>steps ;;
esac
`;

/** Runs the command at normal priority: at the lowest, it may wait a minute beside other tests. */
const nice = `#!/bin/sh
for command; do :; done
exec sh -c "\${command#*autogroup; }"
`;

describe(".ci/run", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-ci-"));
    mkdirSync(join(folder, ".ci"));
    cpSync(".ci/run", join(folder, ".ci/run"));
    const steps = ["audit", "schemathesis", "helm", "compose", "image"].map((name) => `.ci/${name}`);
    for (const name of [...steps, "npm", "node"]) writeFileSync(join(folder, name), stub, { mode: 0o755 });
    writeFileSync(join(folder, "nice"), nice, { mode: 0o755 });
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  const steps = (): readonly string[] => readFileSync(join(folder, "steps"), "utf8").trim().split("\n");

  /** Resolves when all processes that it started have ended: they share a pipe. */
  async function run(
    env: Readonly<Record<string, string>>,
    meanwhile: (end: () => void) => Promise<void> = async () => undefined,
  ): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> {
    const child = spawn("sh", ["-c", 'exec "$0" 2>&1', join(folder, ".ci/run")], {
      stdio: ["ignore", "pipe", "ignore", "pipe"],
      env: {
        PATH: `${folder}:${process.env["PATH"]}`,
        HANGING: "none",
        FAILING: "none",
        SLOW: "none",
        ...env,
      },
    });
    const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
    const printed = text(child.stdout as Readable);
    await meanwhile(() => child.kill("SIGTERM"));
    return { code: await closed, lines: (await printed).trim().split("\n") };
  }

  it("audits before it installs, checks the code beside the tests, and all the rest", async () => {
    const { code, lines } = await run({});

    expect(code).to.equal(0);
    const done = steps();
    expect(done.slice(0, 3)).to.deep.equal(["audit", "--ignore-scripts", "build:tests"]);
    const others = ["check:code", "helm", "compose", "run-all.ts", "schemathesis", "image"];
    expect(done.slice(3)).to.have.members(others);
    expect(lines).to.have.members(done.map((step) => `said by ${step}`));
    for (const step of ["schemathesis", "image"])
      expect(done.indexOf(step)).to.be.above(done.indexOf("run-all.ts"));
  });

  for (const [failing, hanging, said] of [
    ["check:code", "run-all.ts", "checks"],
    ["compose", "run-all.ts", "checks"],
    ["run-all.ts", "check:code", "tests"],
    ["image", "schemathesis", "image"],
  ] as const)
    it(`ends ${hanging} when ${failing} fails, and prints this last`, async () => {
      const { code, lines } = await run({ FAILING: failing, HANGING: hanging });

      expect(code).to.equal(1);
      expect(lines).to.include(`said by ${failing}`);
      expect(lines.at(-1)).to.equal(`${said} FAILED`);
    });

  it("lets the image end by itself, which removes its containers, and reports the fault afterwards", async () => {
    const { code, lines } = await run({ FAILING: "schemathesis", SLOW: "image" });

    expect(code).to.equal(1);
    expect(steps()).to.include("end of image");
    expect(lines.at(-1)).to.equal("schemathesis FAILED");
  });

  it("installs nothing when the audit finds a fault", async () => {
    expect(await run({ FAILING: "audit" })).to.deep.equal({ code: 1, lines: ["said by audit"] });
    expect(steps()).to.deep.equal(["audit"]);
  });

  it("ends all processes at a signal, and shows their output", async () => {
    const { code, lines } = await run({ HANGING: "check:code run-all.ts" }, async (end) => {
      await until(() => ["check:code", "run-all.ts"].every((step) => steps().includes(step)), {
        what: "both to run",
      });
      end();
    });

    expect(code).to.equal(130);
    expect(lines).to.include.members(["said by run-all.ts", "said by check:code"]);
  });
});
