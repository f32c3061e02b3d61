import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "chai";
import { acquireLock, readHolder } from "../../src/embedded/process-lock.ts";

describe("acquireLock", () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "svc-lock-"));
    file = path.join(folder, "lock");
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is held by one at a time, and shown to the others", async () => {
    const first = await acquireLock(file, "here");

    expect(first.kind).to.equal("acquired");
    expect(await acquireLock(file, "there")).to.deep.equal({ kind: "held", holder: await readHolder(file) });
    expect(await readHolder(file)).to.include({ pid: process.pid, note: "here" });
  });

  it("is free again once released", async () => {
    const first = await acquireLock(file, "");
    if (first.kind === "acquired") await first.release();

    expect((await acquireLock(file, "")).kind).to.equal("acquired");
  });

  it("is taken over from a dead process, by one of many", async () => {
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    await writeFile(file, JSON.stringify({ pid, startedAt: "1", note: "" }));

    const outcomes = await Promise.all(Array.from({ length: 10 }, () => acquireLock(file, "")));

    expect(outcomes.filter(({ kind }) => kind === "acquired").length).to.equal(1);
    expect(await readdir(folder)).to.deep.equal(["lock"]);
  });

  it("is taken over when the pid belongs to a later process", async function () {
    if (process.platform !== "linux") this.skip();
    await writeFile(file, JSON.stringify({ pid: process.pid, startedAt: "1", note: "" }));

    expect((await acquireLock(file, "")).kind).to.equal("acquired");
  });

  it("is held while its file is new and still empty, and free after a while", async () => {
    await writeFile(file, "");
    expect(await acquireLock(file, "")).to.deep.equal({ kind: "held", holder: undefined });

    await utimes(file, 1000, 1000);

    expect((await acquireLock(file, "")).kind).to.equal("acquired");
  });

  it("does not release another process's lock", async () => {
    const first = await acquireLock(file, "");
    await writeFile(file, "another's");

    if (first.kind === "acquired") await first.release();

    expect(await readFile(file, "utf8")).to.equal("another's");
  });
});
