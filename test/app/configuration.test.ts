import { expect } from "chai";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readConfiguration, type CheckedConfiguration } from "../../src/app/configuration.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";

const notes = `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  text: { type: String }
triggers: [on_create]
module: ./notes.mjs
`;
const code = "export const transform = (model) => ({ id: model.id });\n";
const changedCode = code.replace("{ id:", "{ number:");

describe("readConfiguration", () => {
  let folder: ReturnType<typeof createMappingFolder>;

  beforeEach(() => {
    folder = createMappingFolder({ "notes.yaml": notes, "notes.mjs": code });
  });

  afterEach(() => folder.remove());

  function write(name: string, text: string): void {
    const path = join(folder.configDir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  async function read(env: NodeJS.ProcessEnv = {}): Promise<CheckedConfiguration> {
    const all = { SVC_CONFIG_DIR: folder.configDir, ...env };
    return readConfiguration({ env: all, cwd: folder.configDir, program: "all" });
  }

  it("reports the faults of the settings and of the mapping files together", async () => {
    write("service.yaml", "http:\n  port: many\n");
    write("resources/notes.yaml", notes.replace("Int,", "Integer,"));

    const failure: unknown = await read({ SVC_LOG_LEVEL: "loud" }).catch((error: unknown) => error);

    expect(failure).to.be.instanceOf(OperatorError);
    const { message, faults } = failure as OperatorError;
    expect(message).to.match(
      /^2 faults in the settings:\n(.*\n){2}1 fault in the mapping files:\n.*notes\.yaml:5:/,
    );
    expect(faults).to.have.length(3);
    expect(faults.join("\n")).to.match(/^\S*service\.yaml:2:9: .*\nSVC_LOG_LEVEL: .*\n\S*notes\.yaml:5:/);
  });

  it("gives processes on the same files the same hash, for any ports and folders", async () => {
    const one = await read();
    const other = await read({ SVC_PORT: "1234", SVC_METRICS_PORT: "1235", SVC_DATA_DIR: "/elsewhere" });

    expect(one.hash)
      .to.match(/^[0-9a-f]{12}$/)
      .and.equal(other.hash);
  });

  for (const [what, name, text] of [
    ["setting", "service.yaml", "webhooks: { maxAttempts: 3 }\n"],
    ["mapping file", "resources/notes.yaml", `${notes}searchableColumns: [text]\n`],
    ["code module", "resources/notes.mjs", changedCode],
  ] as const) {
    it(`gives another hash for another ${what}`, async () => {
      const before = await read();
      write(name, text);

      expect((await read()).hash).not.to.equal(before.hash);
    });
  }

  it("loads code whose text has changed, even directly after it was loaded", async () => {
    const before = await read();
    write("resources/notes.mjs", changedCode);

    const after = await read();

    const answers = [before, after].map(({ definitions }) =>
      definitions.get("notes")?.code.transform?.({ id: 1 }),
    );
    expect(answers).to.deep.equal([{ id: 1 }, { number: 1 }]);
  });
});
