import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { OperatorError } from "../../src/kit/errors.ts";
import { loadSecretKey } from "../../src/config/secret-key.ts";

describe("loadSecretKey", () => {
  let folder: string;
  let dataDir: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-secret-key-"));
    dataDir = join(folder, "data", "deep");
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function refusal(): Promise<unknown> {
    return await loadSecretKey({ configured: undefined, dataDir }).catch((error: unknown) => error);
  }

  it("gives the configured key, and makes no file", async () => {
    const configured = randomBytes(32);

    expect(await loadSecretKey({ configured, dataDir })).to.equal(configured);
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it("creates a key once, for its owner only, and returns the same one from then on", async () => {
    const made = await loadSecretKey({ configured: undefined, dataDir });
    const again = await loadSecretKey({ configured: undefined, dataDir });

    expect(made).to.have.length(32);
    expect(again.equals(made)).to.equal(true);
    expect((await stat(join(dataDir, "secret.key"))).mode & 0o777).to.equal(0o600);
    expect(await readFile(join(dataDir, "secret.key"), "utf8")).to.equal(`${made.toString("base64")}\n`);
  });

  it("gives one key to all simultaneous starts, and leaves nothing else behind", async () => {
    const starts = Array.from({ length: 8 }, () => loadSecretKey({ configured: undefined, dataDir }));
    const keys = await Promise.all(starts);

    expect(new Set(keys.map((key) => key.toString("hex"))).size).to.equal(1);
    expect(await readdir(dataDir)).to.deep.equal(["secret.key"]);
  });

  for (const text of [
    "",
    "c2hvcnQ=",
    "not base64 at all, but thirty-two bytes",
    randomBytes(33).toString("base64"),
    `!${randomBytes(32).toString("base64")}`,
  ]) {
    it(`refuses a file with ${JSON.stringify(text)}, and leaves it unchanged`, async () => {
      await loadSecretKey({ configured: undefined, dataDir });
      await writeFile(join(dataDir, "secret.key"), text);

      const error = await refusal();

      expect(error).to.be.instanceOf(OperatorError);
      expect((error as Error).message).to.include(
        `${join(dataDir, "secret.key")} does not hold a secret key`,
      );
      expect(await readFile(join(dataDir, "secret.key"), "utf8")).to.equal(text);
    });
  }

  it("names the folder when it cannot be created", async () => {
    await writeFile(join(folder, "data"), "a file where a folder is needed");

    const error = await refusal();

    expect(error).to.be.instanceOf(OperatorError);
    expect((error as Error).message).to.match(
      /^The data folder .* \(dataDir, SVC_DATA_DIR\) cannot be written to: EEXIST/,
    );
  });
});
