import { expect } from "chai";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/kit/errors.ts";
import { checkDefinitions, loadDefinitions } from "../../src/mapping/load.ts";
import { loadCode } from "../../src/mapping/read/code.ts";
import { compileMappingSchema, createDraft } from "../../src/mapping/read/draft.ts";
import { parseYaml } from "../../src/config/yaml-source.ts";
import { createMappingFolder } from "./mapping-folder.ts";

describe("loadDefinitions", () => {
  it("throws an OperatorError with every fault and the path of its file", async () => {
    const folder = createMappingFolder({ "a.yaml": "nmae: a", "b.yaml": "" });
    let thrown: unknown;
    try {
      await loadDefinitions(folder.configDir);
    } catch (error) {
      thrown = error;
    }

    expect(thrown).to.be.instanceOf(OperatorError);
    const [head, ...lines] = (thrown as OperatorError).message.split("\n");
    expect(head).to.equal("6 faults in the mapping files:");
    expect(lines).to.have.length(6);
    for (const line of lines)
      expect(line.trim().startsWith(`${folder.configDir}/resources/`), line).to.equal(true);
    folder.remove();
  });

  it("gives the reason why an existing folder cannot be read", async () => {
    const folder = createMappingFolder({ "a.yaml": "" });
    const { faults } = await checkDefinitions(join(folder.configDir, "resources"), { folder: "a.yaml" });

    expect(faults.map(({ message }) => message)).to.deep.equal([
      `expected a folder with mapping files at ${folder.configDir}/resources/a.yaml, which can be read (ENOTDIR); it may be empty. SVC_CONFIG_DIR names the folder around it`,
    ]);
    folder.remove();
  });

  it("loads a code module from a folder that Kubernetes mounts, and whose name begins with two dots", async () => {
    const folder = createMappingFolder({
      "n.yaml":
        "name: notes\nmodel: Note\ntriggers: []\nfields: { id: { type: Int, id: true } }\nmodule: ./n.mjs\n",
      "n.mjs": "export const transform = () => ({});",
    });
    const path = (name: string): string => join(folder.configDir, name);
    mkdirSync(path("..2026_03_28"));
    renameSync(path("resources"), path("..2026_03_28/resources"));
    symlinkSync("..2026_03_28", path("..data"));
    symlinkSync("..data/resources", path("resources"));

    expect((await loadDefinitions(folder.configDir)).get("notes")?.codeHash).to.be.a("string");
    folder.remove();
  });

  it("loads a failed code module again, when its imports are there", async () => {
    const folder = createMappingFolder({
      "n.yaml":
        "name: notes\nmodel: Note\ntriggers: []\nfields: { id: { type: Int, id: true } }\nmodule: ./notes.mjs\n",
      "notes.mjs": 'export { webhookMaxAttempts } from "./attempts.mjs";',
    });
    try {
      const { faults } = await checkDefinitions(folder.configDir);
      expect(faults[0]?.message).to.contain("the code cannot be loaded: Cannot find module");
      writeFileSync(
        join(folder.configDir, "resources", "attempts.mjs"),
        "export const webhookMaxAttempts = () => 3;",
      );
      const definitions = await loadDefinitions(folder.configDir);
      expect(definitions.get("notes")?.code.webhookMaxAttempts?.()).to.equal(3);
    } finally {
      folder.remove();
    }
  });

  it("gives up a code module that waits forever, and loads it again later", async () => {
    const folder = createMappingFolder({ "notes.mjs": "await globalThis.testOfLoading;" });
    const given = globalThis as { testOfLoading?: Promise<void> | undefined };
    const faultsNow = async (limitMs: number): Promise<readonly string[]> => {
      const source = parseYaml("module: ./notes.mjs", "resources/n.yaml");
      const draft = createDraft(source, compileMappingSchema());
      const before = draft.faults.length;
      await loadCode(draft, folder.configDir, limitMs);
      return draft.faults.slice(before).map(({ message }) => message);
    };
    try {
      given.testOfLoading = new Promise(() => undefined);
      expect(await faultsNow(50)).to.deep.equal([
        "the code cannot be loaded: an await at its top level takes more than 0.05 s",
      ]);
      given.testOfLoading = Promise.resolve();
      expect(await faultsNow(10_000)).to.deep.equal([]);
    } finally {
      delete given.testOfLoading;
      folder.remove();
    }
  });
});
