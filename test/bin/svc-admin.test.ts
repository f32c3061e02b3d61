import { expect } from "chai";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

describe("svc-admin", function () {
  this.timeout(60_000);

  it("writes its whole output into a pipe before it exits", async () => {
    const { stdout } = await run(process.execPath, ["dist/bin/svc-admin.js", "openapi"], {
      maxBuffer: Infinity,
    });

    expect(stdout.length).to.be.above(200_000);
    expect(JSON.parse(stdout)).to.include({ openapi: "3.1.0" });
  });

  it("ends with 0 when the reader of its pipe has ended", async () => {
    const script = `${process.execPath} dist/bin/svc-admin.js openapi | head -1; echo "\${PIPESTATUS[0]}"`;

    expect((await run("bash", ["-c", script])).stdout).to.equal("{\n0\n");
  });

  it("ends with the status of the command when the reader of its errors has ended", async () => {
    const script = `${process.execPath} dist/bin/svc-admin.js unknown 2>&1 | true; echo "\${PIPESTATUS[0]}"`;

    expect((await run("bash", ["-c", script])).stdout).to.equal("2\n");
  });
});
