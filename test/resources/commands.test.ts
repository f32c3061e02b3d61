import { expect } from "chai";
import { readFileSync } from "node:fs";
import { runAdmin } from "../../src/cli/program.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { checkFiles, createMappingFolder } from "../mapping/mapping-folder.ts";

const good =
  "name: notes\nmodel: Note\ntriggers: [on_create, on_delete]\naccess: { read: everyone }\nfields: { id: { type: Int, id: true } }\n";

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(files: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> {
  return runTop(files, "resources", ...args);
}

async function runTop(files: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> {
  const folder = createMappingFolder(files);
  const terminal = createMemoryTerminal();
  // Settings with which no other command would start: these two need only the files.
  const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: "nothing" };
  const status = await runAdmin({ args, env, cwd: "/", terminal });
  folder.remove();
  const { stdout, stderr } = terminal.read();
  return { status, stdout, stderr: stderr.replaceAll(folder.configDir, "config") };
}

describe("svc-admin resources check", () => {
  it("says that there is no fault", async () => {
    expect(await run({ "n.yaml": good }, "check")).to.deep.equal({
      status: 0,
      stdout: "No faults in 1 mapping file.\n",
      stderr: "",
    });
  });

  it("warns of fields without a rule of create or update", async () => {
    const fields =
      "fields:\n  id: { type: Int, id: true }\n  text: { type: String }\n  lost: { type: String, optional: true }\n";
    const file = `${good.split("fields:")[0]}${fields}createRules: { text: required }\nupdateRules: { text: sometimes }\n`;
    const told =
      "config/resources/n.yaml:8:3: fields.lost: no rule of createRules or updateRules names this field, so that no request can set it";

    const text = await run({ "n.yaml": file }, "check");
    const json = await run({ "n.yaml": file }, "check", "--json");

    expect([text.status, text.stderr]).to.deep.equal([0, `warning: ${told}\n`]);
    expect([json.status, json.stderr]).to.deep.equal([0, ""]);
    expect(JSON.parse(json.stdout)).to.have.property("warnings").with.length(1);
  });

  it("warns of a rule that no value of its field's type passes", async () => {
    const file = `${good.replace("} }\n", "}, price: { type: Decimal } }")}\ncreateRules: { price: required|email }\n`;

    const { status, stderr } = await run({ "n.yaml": file }, "check");

    expect([status, stderr]).to.deep.equal([
      0,
      "warning: config/resources/n.yaml:6:16: createRules.price: no Decimal passes the rule email, so that no request can set it\n",
    ]);
  });

  it("warns of triggers whose webhooks only admins get", async () => {
    const file = good.replace("access: { read: everyone }\n", "");

    const { status, stderr } = await run({ "n.yaml": file }, "check");

    expect(status).to.equal(0);
    expect(stderr).to.equal(
      "warning: config/resources/n.yaml:3:1: triggers: only admins get webhooks: the file has no ownerColumn, and access.read is owner\n",
    );
  });

  it("ends with status 1 and every fault on stderr", async () => {
    const { status, stdout, stderr } = await run(
      { "a.yaml": good.replace("Int", "Float"), "n.yaml": "x: 1" },
      "check",
    );

    expect(status).to.equal(1);
    expect(stdout).to.equal("");
    expect(stderr.split("\n")[0]).to.equal("svc-admin: 6 faults in the mapping files:");
    expect(stderr).to.contain(
      "  config/resources/a.yaml:5:23: fields.id.type: expected one of Int, BigInt, Decimal, String, Boolean, DateTime, Date, Time, Uuid, Enum for the key\n",
    );
  });

  it("refuses a rule of access that the start refuses", async () => {
    const file = good
      .replace("read: everyone", "read: { label: { equals: a, mode: insensitive } }")
      .replace("fields: {", "fields: { label: { type: String },");

    const json = await run({ "n.yaml": file }, "check", "--json");

    const told =
      "config/resources/n.yaml:4:11: access.read: has a comparison or a value that cannot decide on access";
    expect(await run({ "n.yaml": file }, "check")).to.deep.equal({
      status: 1,
      stdout: "",
      stderr: `svc-admin: 1 fault in the mapping files:\n  ${told}\n`,
    });
    expect(json.status).to.equal(1);
    expect(JSON.parse(json.stdout)).to.have.property("faults").with.nested.property("[0].key", "access.read");
  });

  it("refuses results of a code module that no request or delivery could use", async () => {
    const code = `
      export const createRules = () => ({ text: "required|strin", note: "exists:notes,txt", more: "string" });
      export const updateRules = () => { throw new Error("no rules today"); };
      export const webhookMaxAttempts = () => 0;
      export const webhookBackoff = () => undefined;`;

    const { status, stderr } = await run({ "n.yaml": `${good}module: ./n.mjs\n`, "n.mjs": code }, "check");

    const place = "  config/resources/n.yaml:6:9: module:";
    expect(status).to.equal(1);
    expect(stderr.trimEnd().split("\n")).to.deep.equal([
      "svc-admin: 4 faults in the mapping files:",
      `${place} createRules: text: there is no rule "strin"; did you mean "string"?`,
      `${place} createRules: note: exists: notes has no field "txt"; expected one of id`,
      `${place} updateRules of the resource notes failed: no rules today`,
      `${place} webhookMaxAttempts of the resource notes must answer a whole number from 1 to 1000`,
    ]);
  });

  for (const answer of ["['required']", "{ text: 'required' }"])
    it(`refuses invalid rules of a code module: () => ${answer}`, async () => {
      const { stderr } = await run(
        { "n.yaml": `${good}module: ./n.mjs\n`, "n.mjs": `export const createRules = () => ${answer};` },
        "check",
      );

      expect(stderr).to.contain("module: createRules of the resource notes must answer rules by field\n");
    });

  it("prints the faults as JSON, and ends with status 1 too", async () => {
    const { status, stdout } = await run({ "a.yaml": good.replace("Int", "Float") }, "check", "--json");

    expect(status).to.equal(1);
    expect(JSON.parse(stdout)).to.deep.equal({
      resources: [],
      faults: [
        {
          file: "resources/a.yaml",
          line: 5,
          column: 23,
          key: "fields.id.type",
          message:
            "expected one of Int, BigInt, Decimal, String, Boolean, DateTime, Date, Time, Uuid, Enum for the key",
        },
      ],
      warnings: [],
    });
  });
});

describe("svc-admin resources list", () => {
  it("prints a row for each resource", async () => {
    const { status, stdout } = await run({ "n.yaml": good }, "list", "--json");

    expect(status).to.equal(0);
    expect(JSON.parse(stdout)).to.deep.equal([
      {
        name: "notes",
        model: "Note",
        table: "notes",
        managed: true,
        key: "id",
        triggers: ["on_create", "on_delete"],
        file: "resources/n.yaml",
      },
    ]);
    expect((await run({ "n.yaml": good }, "list")).stdout).to.match(
      /name .* model .* table[^]*notes .* Note .* notes/,
    );
  });

  it("says that there is no file", async () => {
    expect((await run({}, "list")).stdout).to.equal("There is no mapping file.\n");
  });

  it("ends with status 1 when there is a fault", async () => {
    expect((await run({ "n.yaml": "" }, "list")).status).to.equal(1);
  });
});

describe("svc-admin resources show", () => {
  it("prints an equivalent mapping file with every default and rule, and the model", async () => {
    const files = Object.fromEntries(
      ["customers.yaml", "orders.yaml"].map((name) => [
        name,
        readFileSync(`config/resources/${name}`, "utf8"),
      ]),
    );

    const { status, stdout } = await run(files, "show", "orders");
    const plain = await run(files, "show", "customers");
    const json = await run(files, "show", "orders", "--json");

    const [original, again] = await Promise.all(
      [files, { ...files, "orders.yaml": stdout, "customers.yaml": plain.stdout }].map(checkFiles),
    );
    expect([status, again?.faults]).to.deep.equal([0, []]);
    const said = ["fields", "relations", "transform", "access", "baseQuery", "createRules", "count"] as const;
    for (const name of ["orders", "customers"])
      for (const key of said.filter((one) => original?.definitions?.get(name)?.[one] !== undefined))
        expect(again?.definitions?.get(name)?.[key], key).to.deep.equal(
          original?.definitions?.get(name)?.[key],
        );
    expect(stdout).to.include("# model Order {\n").and.to.include('# @@map("orders")'.replace("# ", "#   "));
    expect(plain.stdout).to.include("updateRules:\n");
    expect(JSON.parse(json.stdout))
      .to.have.property("prisma_model")
      .that.matches(/^model Order \{/);
    expect(JSON.parse(json.stdout).definition).to.include({ name: "orders", managed: true });
  });

  it("refuses an unknown name", async () => {
    expect(await run({ "n.yaml": good }, "show", "note")).to.deep.include({
      status: 1,
      stderr: 'svc-admin: There is no resource "note"; did you mean "notes"?\n',
    });
  });
});

describe("svc-admin schema", () => {
  it("prints the Prisma schema of all resources", async () => {
    const { status, stdout } = await runTop({ "n.yaml": good }, "schema");
    const json = await runTop({ "n.yaml": good }, "schema", "--json");

    expect(status).to.equal(0);
    expect(stdout).to.match(/^datasource db \{.*^model Note \{$/ms);
    expect(JSON.parse(json.stdout)).to.deep.equal({ schema: stdout });
  });
});

describe("svc-admin with --json", () => {
  it("escapes characters of the mapping files that could control a terminal", async () => {
    const kind = String.raw`kind: { type: String, default: "\u009b2J\u202e" }`;
    const files = { "n.yaml": good.replace("} }\n", `}, ${kind} }\n`) };

    for (const args of [["resources", "show", "notes"], ["schema"]]) {
      const { status, stdout } = await runTop(files, ...args, "--json");

      expect(status).to.equal(0);
      expect(stdout).not.to.match(/[\x7f-\x9f\p{Cf}]/u);
      expect(stdout).to.include(String.raw`\u009b2J\u202e`);
    }
  });
});
