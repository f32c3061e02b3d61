import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { fillDataDir } from "../support/embedded.ts";
import { notesYaml } from "../support/notes.ts";
import { type Configuration, createProgram, type Program, writeConfiguration } from "../support/program.ts";
import { until } from "../support/wait.ts";

describe("the first start of svc all on the embedded database", function () {
  this.timeout(90_000);
  let configuration: Configuration;
  let all: Program;

  before(async () => {
    configuration = writeConfiguration({ service: "", resources: { "notes.yaml": notesYaml } });
    await fillDataDir(String(configuration.env["SVC_DATA_DIR"]));
    all = await createProgram({ name: "all", env: configuration.env });
  });
  after(async () => {
    await all?.dispose();
    configuration?.dispose();
  });

  it("has written data/admin.token when it is ready: a script that waited for it reads the file", async () => {
    const file = join(String(configuration.env["SVC_DATA_DIR"]), "admin.token");
    const isReady = async (): Promise<boolean> => (await fetch(`${all.healthOrigin}/readyz`)).ok;
    all.launch();
    await until(async () => (await fetch(`${all.healthOrigin}/livez`)).ok, { what: "its health" });

    // Without a pause, which could hide the time between the two.
    while (!(await isReady())) await nextTurn();

    expect(existsSync(file)).to.equal(true);
  });
});
