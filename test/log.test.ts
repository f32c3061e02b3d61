import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";

const run = promisify(execFile);

describe("createLog", () => {
  it("has written every line, in order, when flush calls back", async () => {
    const program = `
      import { createLog } from ${JSON.stringify(new URL("../src/log.ts", import.meta.url).href)};
      const log = createLog({ level: "info" });
      const flushed = () => new Promise((resolve) => log.flush(() => resolve()));
      for (const msg of ["one", "two", "three"]) log.info(msg);
      await flushed();
      console.log('{"msg":"written past the log"}');
      log.info("four");
      await flushed();
      process.exit();`;

    const { stdout } = await run(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program]);

    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).to.deep.equal([
      "one",
      "two",
      "three",
      "written past the log",
      "four",
    ]);
  });
});
