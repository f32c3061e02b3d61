import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { notesYaml } from "../support/notes.ts";
import { admin, createProgram, type Configuration, writeConfiguration } from "../support/program.ts";
import { amqpUrl } from "../support/services.ts";

/** Tells of every WebAssembly module that is compiled, before the program begins. */
const watch = `
  const { Module, instantiate } = WebAssembly;
  const tell = (bytes) => bytes?.byteLength > 1_000_000 && console.error("compiled by " + process.pid);
  WebAssembly.Module = class extends Module { constructor(bytes) { tell(bytes); super(bytes); } };
  WebAssembly.instantiate = (bytes, ...rest) => { tell(bytes); return instantiate(bytes, ...rest); };`;

describe("what svc api and svc dispatcher load at their start", function () {
  this.timeout(60_000);
  let database: TestDatabase;
  let configuration: Configuration;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    database = await createTestDatabase();
    configuration = writeConfiguration({ service: "", resources: { "notes.yaml": notesYaml } });
    env = {
      ...configuration.env,
      DATABASE_URL: database.url,
      AMQP_URL: await amqpUrl(),
      SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    };
    await admin(["migrate"], env);
  });
  after(async () => {
    configuration?.dispose();
    await database?.drop();
  });

  for (const name of ["api", "dispatcher"] as const) {
    it(`is no query compiler and no engine of Prisma, by svc ${name}: each takes 40 MB`, async () => {
      const program = await createProgram({
        name,
        env,
        commandOf: (args) => ({
          command: process.execPath,
          args: ["--import", `data:text/javascript,${encodeURIComponent(watch)}`, ...args],
        }),
      });
      try {
        await program.start();

        // The process that reads the models compiles one, and ends.
        expect(program.written()).to.not.include(`compiled by ${program.pid()}`);
      } finally {
        await program.dispose();
      }
    });
  }
});
