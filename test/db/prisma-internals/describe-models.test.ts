import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { describeModels, type ModelsDescription } from "../../../src/db/prisma-internals/describe-models.ts";
import { OperatorError } from "../../../src/kit/errors.ts";
import { prismaSchemaOf } from "../../../src/mapping/models.ts";
import { definition, definitionsOf, field, keyField } from "../../support/definitions.ts";
import { until } from "../../support/wait.ts";

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** Every kind of field, default and relation that a mapping file can state. */
const everything = prismaSchemaOf(
  definitionsOf(
    definition({
      name: "things",
      fields: [
        keyField("thing_key", { type: "BigInt" }),
        field("s", "String", { length: 5, default: { kind: "literal", value: 'a "b" \\ \n\t é' } }),
        field("list", "Int", { isList: true, default: { kind: "literal", value: [1, -2] } }),
        field("f", "Float", { default: { kind: "literal", value: -1.5 } }),
        field("n", "Decimal", { precision: 12, scale: 2, default: { kind: "literal", value: "0.10" } }),
        field("big", "BigInt", { default: { kind: "literal", value: 12 } }),
        field("on", "Boolean", { default: { kind: "literal", value: true } }),
        field("at", "DateTime", { default: { kind: "literal", value: "2026-01-01T00:00:00Z" } }),
        field("j", "Json", { default: { kind: "literal", value: { a: ['"'] } } }),
        field("raw", "Bytes", { default: { kind: "literal", value: "AP8=" } }),
        field("u", "Uuid", { isUnique: true, default: { kind: "uuid" } }),
        field("code", "String", { default: { kind: "uuid" }, column: 'odd "name"' }),
        field("e", "Enum", { values: ["a"], default: { kind: "literal", value: "a" } }),
        field("made", "DateTime", { default: { kind: "now" }, isIndexed: true }),
        field("changed", "DateTime", { isUpdatedAt: true }),
        field("parent_key", "BigInt", {
          isOptional: true,
          references: { resource: "things", field: "thing_key", as: "parent", onDelete: "setNull" },
        }),
      ],
    }),
    definition({
      name: "parts",
      fields: [
        keyField(),
        field("thing_key", "BigInt", {
          references: { resource: "things", field: "thing_key", as: "thing", onDelete: "cascade" },
        }),
      ],
    }),
  ),
);

describe("describeModels", function () {
  this.timeout(60_000);

  it("returns the description that `prisma generate` of the same version writes", async () => {
    const generated = await generate(everything);

    const { runtimeDataModel, parameterizationSchema } = await describeModels(everything);

    expect(parameterizationSchema).to.deep.equal(generated.parameterizationSchema);
    // Prisma writes only the properties of a field that its runtime reads.
    expect(runtimeDataModel).to.containSubset(generated.runtimeDataModel);
    expect(Object.keys(runtimeDataModel.models)).to.deep.equal(["Things", "Parts"]);
  });

  it("refuses a schema like Prisma, with its message for the operator, without colours", async () => {
    const failure: unknown = await describeModels(everything.replace("s String", "s Strin")).catch(
      (error: unknown) => error,
    );

    expect(failure).to.be.instanceOf(OperatorError);
    const { message } = failure as OperatorError;
    expect(message).to.match(
      /^The models cannot be made from the mapping files:\nerror: Type "Strin" is neither/,
    );
    expect(message).to.include("schema.prisma:").and.not.include("\u001B").and.not.include("error_code");
  });

  it("starts no process for the last described schema", async () => {
    const first = await describeModels(everything);
    const before = processes();

    const asked = describeModels(everything);
    const during = processes();

    expect(await asked).to.equal(first);
    expect(during).to.equal(before);
  });

  it("leaves no process behind, after an answer or a refusal", async () => {
    const before = processes();

    const asked = Promise.allSettled([describeModels(`${everything}\n`), describeModels("model {")]);
    const during = processes();
    await asked;
    await until(() => processes() === before, { what: "the end of both processes" });

    expect(during).to.equal(before + 2);
  });
});

describe("Prisma's packages", () => {
  it("have one version, because their interfaces are internal", () => {
    const names = [
      "@prisma/adapter-pg",
      "@prisma/client",
      "@prisma/driver-adapter-utils",
      "@prisma/get-dmmf",
      "@prisma/param-graph-builder",
      "prisma",
    ];
    const { dependencies, devDependencies } = require("../../../package.json") as Readonly<
      Record<string, Readonly<Record<string, string>>>
    >;

    const versions = names.map((name) => (dependencies?.[name] ?? devDependencies?.[name]) as string);

    expect(new Set(versions)).to.have.property("size", 1);
    expect(versions[0]).to.match(/^\d+\.\d+\.\d+$/);
    expect(dependencies)
      .to.have.property("@prisma/schema-engine-wasm")
      .that.satisfies((version: string) => version.startsWith(`${versions[0]}-`));
  });
});

/** Reads the output of the CLI as text: the module itself would need a folder of packages. */
async function generate(schemaText: string): Promise<ModelsDescription> {
  const folder = await mkdtemp(path.join(tmpdir(), "svc-generate-"));
  try {
    const generator = `generator client {\n  provider = "prisma-client-js"\n  output = "./client"\n}\n`;
    await writeFile(path.join(folder, "schema.prisma"), generator + schemaText);
    await symlink(path.resolve("node_modules"), path.join(folder, "node_modules"), "dir");
    const cli = path.join(path.dirname(require.resolve("prisma/package.json")), "build/index.js");
    await run(process.execPath, [cli, "generate", "--schema", "schema.prisma", "--no-hints"], {
      cwd: folder,
      // Any executable is enough: with one named, Prisma downloads none, and generating runs none.
      env: { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" },
    });
    const text = await readFile(path.join(folder, "client/index.js"), "utf8");
    const inText = (pattern: RegExp): string =>
      pattern.exec(text)?.[1] ?? expect.fail(`no ${pattern} in:\n${text}`);
    return {
      runtimeDataModel: parsed(inText(/^config\.runtimeDataModel = JSON\.parse\((".*")\)$/m)),
      parameterizationSchema: {
        strings: parsed(inText(/^ {2}strings: JSON\.parse\((".*")\),$/m)),
        graph: inText(/^ {2}graph: "(.*)"$/m),
      },
    } as ModelsDescription;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function parsed(literal: string): unknown {
  return JSON.parse(JSON.parse(literal) as string);
}

function processes(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "ProcessWrap").length;
}
