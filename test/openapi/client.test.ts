import { expect } from "chai";
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";

const run = promisify(execFile);

/** A program with the generated types; the lines marked as errors must not compile. */
const program = `
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./api.ts";

const { SVC_URL: baseUrl = "", SVC_TOKEN: token = "", RECEIVER: url = "" } = process.env;
const client = createClient<paths>({
  baseUrl,
  headers: { Authorization: \`Bearer \${token}\` },
  querySerializer: { array: { style: "form", explode: false } },
});

// @ts-expect-error There is no such resource.
void (() => client.GET("/resources/nothing"));
// @ts-expect-error A customer needs an e-mail address.
void (() => client.POST("/resources/customers", { body: { name: "Ada" } }));
// @ts-expect-error There is no such field to filter by.
void (() => client.GET("/resources/orders", { params: { query: { "filter[colour]": { eq: "red" } } } }));
// A webhook can be sent back as it was read, and with another filter.
declare const read: components["schemas"]["Webhook"];
const filter = { amount: { gte: 12 }, or: [{ "customer.name": { contains: "ad" } }] };
void (() => client.PUT("/webhooks/{id}", { params: { path: { id: 1 } }, body: read }));
void (() => client.PUT("/webhooks/{id}", { params: { path: { id: 1 } }, body: { ...read, filter } }));

const customer = await client.POST("/resources/customers", { body: { name: "Ada", email: "ada@example.com" } });
if (customer.error !== undefined) throw new Error(customer.error.message);
const webhook = await client.POST("/webhooks", { body: { url, resource: "orders", events: ["on_create", "on_update"] } });
const secret: string | undefined = webhook.data?.secret;
const made = await client.POST("/resources/orders", {
  params: { header: { "Idempotency-Key": "one" } },
  body: { reference: "A-1", amount: "12.50", customer_id: customer.data.id },
});
const refused = await client.POST("/resources/orders", { body: { reference: "A-1", amount: 1, customer_id: 0 } });
const path = { id: made.data?.id ?? 0 };
const listed = await client.GET("/resources/orders", {
  params: {
    query: {
      "filter[amount]": { gte: 12, lt: 13 },
      "filter[customer.name]": { contains: "ad" },
      sort: ["-created_at", "reference"],
      fields: ["reference", "customer.name"],
      per_page: 5,
    },
  },
});
const shown = await client.GET("/resources/orders/{id}", { params: { path } });
const patched = await client.PATCH("/resources/orders/{id}", { params: { path }, body: { status: "paid" } });
const deleted = await client.DELETE("/resources/orders/{id}", { params: { path } });
let deliveries = 0;
for (const until = Date.now() + 10_000; deliveries < 2 && Date.now() < until; )
  deliveries = (await client.GET("/webhook-deliveries", { params: { query: { webhook_id: webhook.data?.id ?? 0 } } })).data?.data.length ?? 0;

/** The type of a receiver's body. */
type Received = webhooks["orders.on_update"]["post"]["requestBody"]["content"]["application/json"];
const amountOf = ({ data }: Received): string => data.amount;

console.log(
  JSON.stringify({
    secret: secret?.slice(0, 4),
    made: made.data?.amount,
    refused: refused.response.status === 422 && refused.error !== undefined && "errors" in refused.error ? refused.error.errors : undefined,
    listed: listed.data?.data,
    shown: shown.data?.customer?.name,
    patched: patched.data?.status,
    deleted: deleted.response.status,
    deliveries,
    received: typeof amountOf,
  }),
);
`;

/** Compares the types of the console with the document, without fields of any JSON. */
const consoleTypes = `
import type { components } from "./api.ts";
import type { Caller, Delivery, ServiceEvent, Stats } from "${resolve("src/console/api/types.ts")}";
import type { DeliveryDetail, Replay, TestedAttempt, Webhook, WebhookWithSecret } from "${resolve("src/console/api/webhook-types.ts")}";
import type { AuditEntry, ConfigurationInEffect, DeadLetter, ReloadAnswer, Token, User } from "${resolve("src/console/pages/admin/types.ts")}";

declare const given: components["schemas"];
declare function take<T>(value: T): void;
take<Caller>(given["Caller"]);
take<Delivery>(given["Delivery"]);
take<DeliveryDetail>(given["Delivery.shown"]);
take<DeadLetter>(given["DeadLetter"]);
take<Omit<ServiceEvent, "data">>(given["Event"]);
take<Omit<Webhook, "filter">>(given["Webhook"]);
take<Omit<WebhookWithSecret, "filter">>(given["Webhook.made"]);
take<TestedAttempt>(given["Webhook.tested"]);
take<Replay>(given["Replay"]);
take<Stats>(given["Stats"]);
take<Omit<AuditEntry, "details">>(given["AuditEntry"]);
take<Omit<ConfigurationInEffect, "resources">>(given["Configuration"]);
take<ReloadAnswer>(given["Reload"]);
take<Token>(given["Token"]);
take<User>(given["User"]);
`;

describe("a client made of the document by openapi-typescript and openapi-fetch", () => {
  let service: TestService;
  let receiver: TestReceiver;
  let folder: string;
  let admin: TestUser;
  before(async () => {
    [service, receiver] = await Promise.all([startService({ mode: "servers" }), startReceiver()]);
    admin = await service.createUser({ isAdmin: true });
    folder = await mkdtemp(join(tmpdir(), "svc-client-"));
    await symlink(resolve("node_modules"), join(folder, "node_modules"));
  });
  after(async () => {
    await service?.stop();
    await receiver?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it("compiles, without the parts that the document lacks", async () => {
    const { body } = await admin.request("GET", "/openapi.json");
    await writeFile(join(folder, "openapi.json"), JSON.stringify(body));
    await writeFile(join(folder, "program.ts"), program);
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    const options = {
      module: "nodenext",
      target: "es2023",
      types: ["node"],
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      rewriteRelativeImportExtensions: true,
      outDir: "out",
      rootDir: ".",
    };
    const tsconfig = { compilerOptions: options, files: ["program.ts"] };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
    const hook = resolve("test/openapi/typescript-5.mjs");
    const generator = resolve("node_modules/openapi-typescript/bin/cli.js");

    const arguments_ = ["--import", hook, generator, "openapi.json", "--output", "api.ts"];
    await run(process.execPath, arguments_, { cwd: folder });
    const compiler = run(resolve("node_modules/.bin/tsc"), ["-p", "."], { cwd: folder });

    // The output of the compiler has the reason of a refusal.
    expect(await compiler.catch((error: unknown) => error)).to.include({ stdout: "" });
  });

  it("agrees with the types of the console", async () => {
    await writeFile(join(folder, "console-types.ts"), consoleTypes);
    const options = { module: "esnext", moduleResolution: "bundler", allowImportingTsExtensions: true };
    const compilerOptions = { ...options, noEmit: true, strict: true, types: [] };
    const tsconfig = { compilerOptions, files: ["console-types.ts"] };
    await writeFile(join(folder, "console-types.json"), JSON.stringify(tsconfig));
    const compiler = run(resolve("node_modules/.bin/tsc"), ["-p", "console-types.json"], { cwd: folder });

    expect(await compiler.catch((error: unknown) => error)).to.include({ stdout: "" });
  });

  it("creates, lists, shows, changes, deletes and subscribes", async () => {
    const env = { ...process.env, SVC_URL: service.baseUrl, SVC_TOKEN: admin.token, RECEIVER: receiver.url };
    const { stdout } = await run(process.execPath, ["out/program.js"], { cwd: folder, env });

    expect(JSON.parse(stdout)).to.deep.equal({
      secret: "sec_",
      made: "12.50",
      refused: {
        reference: ["The reference has already been taken."],
        customer_id: ["The selected customer id is invalid."],
      },
      listed: [{ reference: "A-1", customer: { name: "Ada" } }],
      shown: "Ada",
      patched: "paid",
      deleted: 204,
      deliveries: 2,
      received: "function",
    });
  });
});
