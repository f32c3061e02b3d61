import { expect } from "chai";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfiguration } from "../../src/app/configuration.ts";
import { createReadiness } from "../../src/app/readiness.ts";
import { startService, type Service } from "../../src/app/service.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { fillDataDir } from "../support/embedded.ts";
import { createMemoryLog } from "../support/http.ts";
import { notesYaml } from "../support/notes.ts";
import { until } from "../support/wait.ts";

async function rowOf({ infrastructure: { sql } }: Service): Promise<unknown> {
  return (await sql("SELECT configuration, reload_faults AS faults FROM svc.processes"))[0];
}

describe("startService", () => {
  let folder: string;
  let service: Service | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-start-"));
    await mkdir(join(folder, "config", "resources"), { recursive: true });
    await writeFile(mappingFile(), notesYaml);
    await fillDataDir(join(folder, "data"), { isMigrated: true });
  });

  afterEach(async () => {
    await service?.program.stop();
    await service?.leave();
    await service?.infrastructure.close();
    service = undefined;
    await rm(folder, { recursive: true });
  });

  const mappingFile = (): string => join(folder, "config", "resources", "notes.yaml");

  /** Starts it on the files, then runs `change` after they were read. */
  async function startAndChange(change: () => Promise<void>): Promise<Service> {
    const env = {
      SVC_CONFIG_DIR: join(folder, "config"),
      SVC_DATA_DIR: join(folder, "data"),
      SVC_HOST: "127.0.0.1",
      SVC_PORT: "0",
    };
    const read = () => readConfiguration({ env, cwd: folder, program: "all" });
    const checked = await read();
    await change();
    service = await startService({
      name: "all",
      checked,
      source: { read, cwd: folder },
      log: createMemoryLog().log,
      metrics: createMetrics(),
      readiness: createReadiness(),
      stopping: new AbortController().signal,
      onReload: () => undefined,
    });
    return service;
  }

  it("loads files that changed while the start waited, without a reload request", async () => {
    const started = await startAndChange(() =>
      writeFile(mappingFile(), notesYaml.replace("text: {", "title: {")),
    );
    const { hash: before } = started.program.configuration();

    await until(() => started.program.configuration().hash !== before, { what: "the files" });
    const { hash, definitions } = started.program.configuration();
    expect(JSON.stringify([...definitions.values()])).to.include("title");
    await until(async () => JSON.stringify(await rowOf(started)).includes(hash), { what: "the row" });
  });

  it("reports a fault in them like a reload, and continues", async () => {
    const started = await startAndChange(() => writeFile(mappingFile(), "name: 1"));

    await until(async () => JSON.stringify(await rowOf(started)).includes("notes.yaml"), {
      what: "the refusal",
    });
    expect(started.program.configuration().definitions.has("notes")).to.equal(true);
  });
});
