import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";

const run = promisify(execFile);

describe("docker-entrypoint.sh", () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-entrypoint-"));
    writeFileSync(join(folder, "svc"), '#!/bin/sh\necho svc "$@"\n');
    chmodSync(join(folder, "svc"), 0o755);
  });

  after(() => rmSync(folder, { recursive: true }));

  for (const [args, expected] of [
    [["api"], "svc api\n"],
    [["--version"], "svc --version\n"],
    [["-v"], "svc -v\n"],
    [[""], "svc \n"],
    [["echo", "a b"], "a b\n"],
  ] as const)
    it(`makes ${JSON.stringify(args)} a command, and prints nothing`, async () => {
      const env = { PATH: `${folder}:${process.env["PATH"]}` };

      expect(await run("sh", ["docker-entrypoint.sh", ...args], { env })).to.deep.equal({
        stdout: expected,
        stderr: "",
      });
    });
});
