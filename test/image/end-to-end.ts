/** Run by .ci/image, which builds the image `SVC_IMAGE` and names the engine `SVC_IMAGE_ENGINE`. */
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { type Container, createEngine, type Outcome, type RunOptions } from "../support/container.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { freePort, makeFolder, removeFolder } from "../support/private-process.ts";
import { removeTopology } from "../support/queues.ts";
import { type ReceivedRequest, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";

const image = process.env["SVC_IMAGE"] ?? "localhost/svc:dev";
const engine = createEngine(process.env["SVC_IMAGE_ENGINE"] === "docker" ? "docker" : "podman");

/** Debian 90 MB, Node.js 121 MB, packages 50 MB, the service 2 MB. */
const mostBytes = 290_000_000;
const startLimitMs = 60_000;
const stopLimitMs = 15_000;
const deliveryLimitMs = 30_000;

/** Prints the contents of the image as one JSON text. */
const inventory = `
  const { readdirSync } = require("node:fs");
  const within = (folder) => readdirSync(folder, { recursive: true }).map((name) => folder + "/" + name);
  const packages = readdirSync("/opt/svc/node_modules").flatMap((name) =>
    name.startsWith("@") ? readdirSync("/opt/svc/node_modules/" + name).map((part) => name + "/" + part) : [name]);
  console.log(JSON.stringify({
    root: readdirSync("/opt/svc"),
    config: readdirSync("/etc/svc"),
    programs: readdirSync("/usr/local/bin"),
    packages,
    suspects: ["/opt", "/home", "/etc/svc", "/usr/local"].flatMap(within)
      .filter((file) => /\\/(\\.git|\\.env|\\.npm|\\.npmrc|_cacache|[^/]+\\.(pem|key|token))(\\/|$)/.test(file)),
  }));`;

describe("the image", function () {
  this.timeout(240_000);
  const containers: Container[] = [];
  const volume = `svc-image-${randomBytes(4).toString("hex")}`;
  let receiver: TestReceiver;
  let service: Service;
  let adminToken: string;
  let customer: number;

  before(async () => {
    receiver = await startReceiver();
    succeeded(await engine.call("volume", "create", volume));
    service = await start({ mounts: { "/data": volume } });
  });

  after(async () => {
    for (const container of containers) await container.remove();
    await engine.call("volume", "rm", "--force", volume);
    await receiver.close();
  });

  it(`is smaller than ${mostBytes / 1e6} MB`, async () => {
    const [size] = await inspect<[number]>("[{{.Size}}]");

    expect(size).to.be.greaterThan(0).and.lessThan(mostBytes);
  });

  it("runs as 1000, says what it is, and names its ports and its volume", async () => {
    const config = await inspect<ImageConfig>("{{json .Config}}");

    expect(config.User).to.equal("1000:1000");
    expect(Object.keys(config.ExposedPorts)).to.have.members(["8080/tcp", "9090/tcp"]);
    expect(Object.keys(config.Volumes)).to.deep.equal(["/data"]);
    expect(config.Labels).to.include.keys(
      ["title", "description", "licenses", "base.name", "version", "revision", "created"].map(
        (name) => `org.opencontainers.image.${name}`,
      ),
    );
  });

  it("holds the service and its packages, and no development package, build tool, source, history or secret", async () => {
    const { devDependencies, dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as Packages;

    const { stdout } = succeeded(await service.container.exec("node", "-e", inventory));
    const { root, config, programs, packages, suspects } = JSON.parse(stdout) as Inventory;

    expect(root).to.have.members(["LICENSE", "config", "dist", "node_modules", "package.json", "prisma"]);
    expect(config).to.have.members(["example-team", "resources", "schema", "service.yaml"]);
    expect(programs.filter((name) => name !== "nodejs")).to.have.members([
      "docker-entrypoint.sh",
      "node",
      "svc",
      "svc-admin",
    ]);
    expect(packages).to.include.members(Object.keys(dependencies));
    expect(packages).not.to.include.any.members(Object.keys(devDependencies));
    expect(suspects).to.deep.equal([]);
  });

  it("has tini as its init, which runs svc's programs, svc-admin and other commands by their names", async () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as Packages;
    const { Entrypoint: entrypoint, Cmd: args } = await inspect<ImageConfig>("{{json .Config}}");

    expect([entrypoint, args]).to.deep.equal([["tini", "--", "docker-entrypoint.sh"], ["all"]]);
    expect(succeeded(await service.container.exec("cat", "/proc/1/comm")).stdout).to.equal("tini\n");
    expect(succeeded(await enter("--version")).stdout).to.equal(`${version}\n`);
    expect(succeeded(await enter("svc-admin", "resources", "list")).stdout).to.include("customers");
    expect(succeeded(await enter("echo", "api")).stdout).to.equal("api\n");
  });

  it("keeps the young generation small, and one arena for all threads", async () => {
    const read = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'";
    const lines = succeeded(await service.container.exec("sh", "-c", read)).stdout.split("\n");

    expect(lines).to.include.members(["--max-semi-space-size=4", "MALLOC_ARENA_MAX=1"]);
  });

  it("explains the error when a program is unknown or cannot start", async () => {
    const [unknown, api, dispatcher] = await Promise.all([enter("apy"), enter("api"), enter("dispatcher")]);

    expect(unknown).to.include({ code: 2 });
    expect(unknown.stderr).to.include('there is no program "apy"');
    for (const { code, stderr } of [api, dispatcher]) {
      expect(code).to.equal(1);
      expect(stderr).to.include("AMQP_URL");
    }
  });

  it("runs without root, without capabilities and with a read-only root file system", async () => {
    const { stdout } = succeeded(
      await service.container.exec("sh", "-c", "id -u; grep -E 'CapEff|NoNewPrivs' /proc/1/status"),
    );
    const write = await service.container.exec("sh", "-c", "echo x > /opt/svc/x");

    expect(stdout.replaceAll(/\s+/g, " ").trim()).to.equal("1000 CapEff: 0000000000000000 NoNewPrivs: 1");
    expect(write.stderr).to.include("Read-only file system");
    // .ci/image builds from files that only their owner may read.
    const hidden = await service.container.exec("find", "/opt", "/etc/svc", "!", "-readable");
    expect(hidden).to.include({ code: 0, stdout: "" });
  });

  describe("without a setting", () => {
    it("serves the samples on the embedded database", async () => {
      const { stdout } = succeeded(
        await service.container.exec(
          "svc-admin",
          "create-user",
          "--name",
          "Ada",
          "--email",
          "ada@example.com",
          "--admin",
          "--json",
        ),
      );
      ({ token: adminToken } = JSON.parse(stdout) as { readonly token: string });

      expect(await service.ask("GET", "/whoami", adminToken)).to.deep.include({ status: 200 });
    });

    it("serves the console with all its files", async () => {
      const page = await fetch(`${service.origin}/console`);
      const files = [...(await page.text()).matchAll(/(?:src|href)="\.?\/?(assets\/[^"]+)"/g)];
      const answers = await Promise.all(files.map(([, file]) => fetch(`${service.origin}/console/${file}`)));

      expect(page.status).to.equal(200);
      expect(answers.length).to.be.at.least(2);
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200));
    });

    it("passes its HEALTHCHECK, which fails with the reason when nothing answers", async () => {
      const command = healthcheck();

      const healthy = await service.container.exec(...command);
      const alone = await service.container.exec("env", `SVC_METRICS_PORT=${await freePort()}`, ...command);

      expect(healthy).to.include({ code: 0, stderr: "" });
      expect(alone).to.include({ code: 1 });
      expect(alone.stderr).to.include("ECONNREFUSED");
    });

    it("delivers a created record, signed", async () => {
      const { secret } = await service.subscribe(adminToken, receiver.url);

      const { status, body } = await service.ask("POST", "/resources/customers", adminToken, {
        name: "Ada",
        email: "ada@example.com",
      });
      const [delivery] = await receiver.waitFor(1, { timeoutMs: deliveryLimitMs });

      expect(status).to.equal(201);
      customer = (body as { readonly id: number }).id;
      await expectSigned(delivery, secret, { resource: "customers", id: customer });
    });

    it("ends by SIGTERM with 0, and keeps its data in the volume", async () => {
      const ended = await service.container.terminate(stopLimitMs);
      const log = await service.container.logs();
      await service.container.remove();
      service = await start({ mounts: { "/data": volume } });

      expect(ended).to.include({ code: 0 });
      expect(log).to.include('"stopped"');
      expect(await service.ask("GET", `/resources/customers/${customer}`, adminToken)).to.deep.include({
        status: 200,
      });
      await service.ask("DELETE", `/resources/customers/${customer}`, adminToken);
      expect(await receiver.waitFor(2, { timeoutMs: deliveryLimitMs })).to.have.length(2);
    });
  });

  describe("on PostgreSQL and RabbitMQ, with mapping files mounted over the samples and nothing to write to", () => {
    let database: TestDatabase;
    let env: Readonly<Record<string, string>>;
    let folder: string;
    let empty: string;
    let api: Service;
    let dispatcher: Service;

    before(async () => {
      database = await createTestDatabase();
      env = {
        DATABASE_URL: database.url,
        AMQP_URL: await amqpUrl(),
        SVC_SECRET_KEY: randomBytes(32).toString("base64"),
      };
      folder = makeFolder("image-config");
      empty = makeFolder("image-data");
      // The container has another user.
      for (const made of [folder, empty]) chmodSync(made, 0o755);
      cpSync("config/resources", `${folder}/resources`, { recursive: true });
      rmSync(`${folder}/resources/tasks.yaml`);
      writeFileSync(`${folder}/service.yaml`, "webhooks: { allowedNetworks: [127.0.0.0/8] }\n");
    });

    after(async () => {
      await api?.container.remove();
      await dispatcher?.container.remove();
      await database.drop();
      await removeTopology(env["AMQP_URL"] ?? "");
      for (const made of [folder, empty]) removeFolder(made);
    });

    it("migrates, delivers from the dispatcher the writes of the API, and ends both by SIGTERM with 0", async () => {
      const mounts = { "/etc/svc:ro": folder, "/data:ro": empty };
      const migrated = await engine.run({ image, args: ["svc-admin", "migrate"], env, mounts });
      [api, dispatcher] = await Promise.all([
        start({ args: ["api"], env, mounts }),
        start({ args: ["dispatcher"], env, mounts }),
      ]);
      const { stdout } = succeeded(
        await api.container.exec(
          "svc-admin",
          "create-user",
          "--name",
          "Bo",
          "--email",
          "bo@example.com",
          "--admin",
          "--json",
        ),
      );
      const { token } = JSON.parse(stdout) as { readonly token: string };
      const before = receiver.received.length;

      const { secret } = await api.subscribe(token, receiver.url);
      const { body } = await api.ask("POST", "/resources/customers", token, {
        name: "Bo",
        email: "bo@example.com",
      });
      const delivery = (await receiver.waitFor(before + 1, { timeoutMs: deliveryLimitMs })).at(-1);
      const ended = await Promise.all(
        [api, dispatcher].map(({ container }) => container.terminate(stopLimitMs)),
      );

      expect(migrated).to.include({ code: 0 });
      await expectSigned(delivery, secret, {
        resource: "customers",
        id: (body as { readonly id: number }).id,
      });
      expect(ended.map(({ code }) => code)).to.deep.equal([0, 0]);
    });
  });

  /** Runs the command of `docker run IMAGE ...args` in the running container. */
  function enter(...args: readonly string[]): Promise<Outcome> {
    return service.container.exec("docker-entrypoint.sh", ...args);
  }

  /** Resolves when it is ready. */
  async function start(options: Omit<RunOptions, "image">): Promise<Service> {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const env = { ...options.env, SVC_PORT: String(port), SVC_METRICS_PORT: String(metricsPort) };
    const container = await engine.start({ ...options, image, env });
    containers.push(container);
    try {
      const isReady = async (): Promise<boolean> =>
        (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok;
      await until(async () => (await isReady().catch(() => false)) || !(await container.isRunning()), {
        timeoutMs: startLimitMs,
        what: "a ready service",
      });
      if (!(await container.isRunning())) throw new Error("It ended.");
    } catch (error) {
      throw new Error(`The container is not ready. Its log:\n${await container.logs()}`, { cause: error });
    }
    const ask: Service["ask"] = async (method, path, token, body) => {
      const response = await fetch(`http://127.0.0.1:${port}/svc-api${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
    };
    return {
      container,
      origin: `http://127.0.0.1:${port}`,
      ask,
      async subscribe(token, url) {
        const events = ["on_create", "on_update", "on_delete"];
        const { status, body } = await ask("POST", "/webhooks", token, {
          url,
          resource: "customers",
          events,
        });
        expect(status).to.equal(201);
        return body as { readonly secret: string };
      },
    };
  }
});

interface Service {
  readonly container: Container;
  readonly origin: string;
  ask(
    method: string,
    path: string,
    token: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  subscribe(token: string, url: string): Promise<{ readonly secret: string }>;
}

interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly User: string;
  readonly ExposedPorts: object;
  readonly Volumes: object;
  readonly Labels: Readonly<Record<string, string>>;
}

interface Inventory {
  readonly root: readonly string[];
  readonly config: readonly string[];
  readonly programs: readonly string[];
  readonly packages: readonly string[];
  readonly suspects: readonly string[];
}

interface Packages {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

async function inspect<T>(format: string): Promise<T> {
  const { stdout } = succeeded(await engine.call("image", "inspect", "--format", format, image));
  return JSON.parse(stdout) as T;
}

function succeeded(outcome: Outcome): Outcome {
  if (outcome.code !== 0) expect.fail(`exit status ${outcome.code}: ${outcome.stderr || outcome.stdout}`);
  return outcome;
}

/** Returns the check of the Dockerfile: images in OCI's format do not keep it. */
function healthcheck(): readonly string[] {
  const [, command = ""] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(readFileSync("Dockerfile", "utf8")) ?? [];
  return JSON.parse(command) as readonly string[];
}

/** Verifies with GitHub's own library, on the bytes as they arrived. */
async function expectSigned(
  delivery: ReceivedRequest | undefined,
  secret: string,
  { resource, id }: { readonly resource: string; readonly id: number },
): Promise<void> {
  const text = delivery?.rawBody.toString() ?? "";
  const signature = String(delivery?.headers["x-service-signature"]);
  expect(await verify(secret, text, signature)).to.equal(true);
  expect(await verify("another secret", text, signature)).to.equal(false);
  const event = JSON.parse(text) as {
    readonly event: string;
    readonly resource: string;
    readonly data: { readonly id: number };
  };
  expect(event).to.include({ event: "on_create", resource });
  expect(event.data).to.include({ id });
}
