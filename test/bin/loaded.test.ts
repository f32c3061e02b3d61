import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { notesYaml } from "../support/notes.ts";
import { admin, createProgram, type Configuration, writeConfiguration } from "../support/program.ts";
import { request } from "../support/service.ts";
import { amqpUrl } from "../support/services.ts";

/** Reports each compiled WebAssembly module, from before the program begins. */
const watch = `
  const { Module, instantiate } = WebAssembly;
  const tell = (bytes) => bytes?.byteLength > 1_000_000 && console.error("compiled by " + process.pid);
  WebAssembly.Module = class extends Module { constructor(bytes) { tell(bytes); super(bytes); } };
  WebAssembly.instantiate = (bytes, ...rest) => { tell(bytes); return instantiate(bytes, ...rest); };`;

describe("what svc api and svc dispatcher load", function () {
  this.timeout(60_000);
  let database: TestDatabase;
  let configuration: Configuration;
  let env: Readonly<Record<string, string>>;
  let token: string;

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
    const ada = ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"];
    token = String((await admin(ada, env))["token"]);
  });
  after(async () => {
    configuration?.dispose();
    await database?.drop();
  });

  /** Changes all rows of the user that the API can change. */
  async function useAll(baseUrl: string): Promise<void> {
    const send = async (method: string, path: string, body?: unknown): Promise<number> => {
      const answer = await request({ url: baseUrl + path, method, token, body });
      expect(answer.status, `${method} ${path}`).to.be.within(200, 204);
      return (answer.body as { readonly id?: number } | undefined)?.id ?? 0;
    };
    const webhook = { url: "https://example.com/hook", resource: "notes", events: ["on_create"] };
    const id = await send("POST", "/webhooks", webhook);
    await send("PATCH", `/webhooks/${id}`, { headers: { "X-Key": "a" } });
    await send("DELETE", `/webhooks/${id}`);
    const user = await send("POST", "/users", { name: "Ben", email: "ben@example.com" });
    await send("PATCH", `/users/${user}`, { name: "Bo" });
    const made = await send("POST", `/users/${user}/tokens`, { name: "one" });
    await send("DELETE", `/users/${user}/tokens/${made}`);
    await send("GET", `/resources/notes/${await send("POST", "/resources/notes", { text: "a" })}`);
  }

  for (const name of ["api", "dispatcher"] as const) {
    it(`is no query compiler and no engine of Prisma, by svc ${name} at a start and at work: 40 MB each`, async () => {
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
        if (name === "api") await useAll(`${program.origin}/svc-api`);

        // The process that reads the models compiles one module, and ends.
        expect(program.written()).to.not.include(`compiled by ${program.pid()}`);
      } finally {
        await program.dispose();
      }
    });
  }
});
