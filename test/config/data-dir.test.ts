import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { prepareDataDir } from "../../src/config/data-dir.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { makeFolder, removeFolder } from "../support/private-process.ts";

/** A user for whom permissions count, unlike root. */
const otherUser = 65_534;

async function refusal(path: string, options?: { readonly neededBytes: number }): Promise<string> {
  try {
    await prepareDataDir(path, options);
  } catch (error) {
    expect(error).to.be.instanceOf(OperatorError);
    return (error as OperatorError).message;
  }
  return expect.fail(`${path} is taken`);
}

describe("prepareDataDir", () => {
  let folder: string;

  beforeEach(() => {
    folder = makeFolder("data-dir");
  });
  afterEach(() => removeFolder(folder));

  it("creates the folder with its parents, and leaves nothing in it", async () => {
    const path = join(folder, "a", "b");

    await Promise.all([prepareDataDir(path), prepareDataDir(path)]);
    await prepareDataDir(path);

    expect(readdirSync(path)).to.deep.equal([]);
  });

  it("refuses a path where a file is, or that leads through one, with the setting, the path and the remedy", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");

    for (const path of [file, join(file, "data")])
      expect(await refusal(path))
        .to.include(`The data folder ${path} (dataDir, SVC_DATA_DIR) cannot be written to: EEXIST`)
        .and.include("Name a folder that user")
        .and.include("DATABASE_URL");
  });

  it("refuses a path that cannot be created although its parent exists, at once", async () => {
    expect(await refusal("/proc/svc-data/a")).to.match(/cannot be written to: ENOENT/);
  });

  it("refuses a folder that the process may not write to", async () => {
    const path = join(folder, "locked");
    mkdirSync(path);
    chmodSync(folder, 0o755);
    chmodSync(path, 0o555);
    const isRoot = process.geteuid?.() === 0;

    if (isRoot) process.seteuid?.(otherUser);
    try {
      expect(await refusal(path)).to.include("EACCES");
      expect(await refusal(join(path, "data"))).to.include(`a folder that user ${process.geteuid?.()} may`);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
    expect(existsSync(join(path, "data"))).to.equal(false);
  });

  it("refuses a disk without the required space, with the available space", async () => {
    expect(await refusal(folder, { neededBytes: 2 ** 60 })).to.match(
      /: \d+ MB are free on its disk, and 1099511627776 MB are needed\. Name a folder/,
    );
  });
});
