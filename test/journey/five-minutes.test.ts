import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { freePort, makeFolder, removeFolder } from "../support/private-process.ts";
import { createProgram, type Program } from "../support/program.ts";

/** Returns the block of the README for the second terminal. */
function pastedBlock(): string {
  const [, block] =
    /<!-- run by test\/journey\/five-minutes\.test\.ts -->\n```sh\n(.*?)```/s.exec(
      readFileSync("README.md", "utf8"),
    ) ?? [];
  if (block === undefined) throw new Error("The README has no block that is marked for this test.");
  return block;
}

describe("the five minutes of the README", function () {
  this.timeout(60_000);
  let folder: string;
  let program: Program;

  before(async () => {
    folder = makeFolder("five-minutes");
    const env = { SVC_CONFIG_DIR: join(process.cwd(), "config"), SVC_DATA_DIR: join(folder, "data") };
    program = await createProgram({ name: "all", env });
    program.launch();
  });
  after(async () => {
    await program?.dispose();
    removeFolder(folder);
  });

  it("end with a verified webhook when the block is pasted before the service is ready", async () => {
    const receiverPort = String(await freePort());
    const block = pastedBlock()
      .replaceAll("http://127.0.0.1:8080", program.origin)
      .replaceAll("http://127.0.0.1:9090", program.healthOrigin)
      .replaceAll("4000", receiverPort)
      .replaceAll("/tmp/receiver.mjs", join(folder, "receiver.mjs"));
    // The receiver ends with the shell, also when this test fails.
    const script = `trap 'kill $(jobs -p)' EXIT\n${block}`;

    const running = promisify(execFile)("bash", { cwd: folder, timeout: 50_000 });
    running.child.stdin?.end(script);
    const { stdout, stderr } = await running;

    expect(stdout).to.match(/^verified [\da-f-]{36} \{"event":"on_create","resource":"customers",/m);
    expect(stdout).to.match(/^\{"id":1,"name":"Ada Lovelace","email":"ada@example\.com"/m);
    expect(stdout).to.match(/^\{"data":\[\{"id":1,.*"status":"delivered","attempt":1,/m);
    expect(stderr).to.equal("");
  });
});
