import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { faultInFile, faultOf } from "../../src/operations/shown-fault.ts";
import { makeFolder, removeFolder } from "../support/private-process.ts";

describe("faultOf", () => {
  it("takes file, line and column from the text", () => {
    expect(faultOf("config/resources/a.yaml:12:3: fields.id: expected a type")).to.deep.equal({
      message: "fields.id: expected a type",
      file: "config/resources/a.yaml",
      line: 12,
      column: 3,
      excerpt: null,
    });
  });

  it("returns a text without a place unchanged", () => {
    expect(faultOf("SVC_PORT: expected a port")).to.deep.include({
      message: "SVC_PORT: expected a port",
      file: null,
      line: null,
    });
  });
});

describe("faultInFile", () => {
  let cwd: string;
  let configDir: string;
  before(() => {
    cwd = makeFolder("faults");
    configDir = join(cwd, "config");
    mkdirSync(join(configDir, "resources"), { recursive: true });
    writeFileSync(join(configDir, "resources/a.yaml"), "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n");
    writeFileSync(
      join(configDir, "service.yaml"),
      "# secretKey: hunter1\nsecretKey: hunter2hunter2\npreviousSecretKeys:\n  - hunter3\ndatabase: { url: 'postgres://x:hunter4@db' }\nhttp:\n  prot: 1 # hunter5\n",
    );
    writeFileSync(join(cwd, "outside.yaml"), "hunter6\n");
  });
  after(() => removeFolder(cwd));

  const excerptOf = async (text: string): Promise<readonly string[] | undefined> =>
    (await faultInFile(text, { configDir, cwd })).excerpt?.map(({ line, text: shown }) => `${line} ${shown}`);

  it("shows three lines before and after", async () => {
    expect(await excerptOf("config/resources/a.yaml:5:1: bad")).to.deep.equal([
      "2 two",
      "3 three",
      "4 four",
      "5 five",
      "6 six",
      "7 seven",
      "8 eight",
    ]);
    expect(await excerptOf("config/resources/a.yaml:1:1: bad")).to.deep.equal([
      "1 one",
      "2 two",
      "3 three",
      "4 four",
    ]);
  });

  it("shows only keys of service.yaml, which may hold secrets", async () => {
    expect(await excerptOf("config/service.yaml:4:3: bad")).to.deep.equal([
      "1 # …",
      "2 secretKey: …",
      "3 previousSecretKeys:",
      "4   …",
      "5 database: …",
      "6 http:",
      "7   prot: …",
    ]);
  });

  it("reads no file outside the folder of the configuration, and no missing one", async () => {
    for (const file of ["outside.yaml", "config/../outside.yaml", "/etc/hostname", "config/none.yaml"])
      expect(await excerptOf(`${file}:1:1: bad`), file).to.equal(undefined);
  });
});
