import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { parse } from "yaml";
import { createAdminProgram } from "../src/cli/program.ts";
import { loadConfig, type Config } from "../src/config/load.ts";
import { settings } from "../src/config/settings.ts";
import { createMemoryTerminal } from "./support/memory-terminal.ts";
import { startPrivatePostgres } from "./support/postgres.ts";
import { admin } from "./support/program.ts";
import { psql } from "./support/psql.ts";
import { makeFolder, removeFolder } from "./support/private-process.ts";

const run = promisify(execFile);

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly args: Readonly<Record<string, string>> };
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
}

// .ci/compose checks Compose against its schema. This test checks that it fits the service.
const { services, volumes } = parse(readFileSync("compose.yaml", "utf8"), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const programs = ["migrate", "api", "dispatcher"] as const;
const variables = Object.values(settings).flatMap((setting) => {
  if (!("env" in setting)) return [];
  return "isSecret" in setting ? [setting.env, `${setting.env}_FILE`] : [setting.env];
});

/** Returns the service of this name. */
function service(name: string): Service {
  return services[name] ?? expect.fail(`no service ${name}`);
}

/** Runs the script of the service `keys` on a folder in place of its volumes. */
async function makeKeys(folder: string): Promise<void> {
  const [script = ""] = service("keys").command ?? [];
  await run("sh", ["-euc", script.replaceAll("$$", "$").replace("cd /made", `cd ${folder}`)]);
}

/** Returns the settings of the API on a folder in place of the volumes. */
function configOf(folder: string): Config {
  const env = Object.fromEntries(
    Object.entries(service("api").environment ?? {})
      .filter(([key]) => key.endsWith("_FILE"))
      .map(([key, file]) => [key, file.replace("/run/keys", join(folder, "keys"))]),
  );
  return loadConfig({ env, cwd: folder, program: "api" });
}

describe("compose.yaml", () => {
  it("runs programs that there are", () => {
    const terminal = createMemoryTerminal();
    const { commands } = createAdminProgram({ env: {}, cwd: process.cwd(), terminal });

    expect(programs.map((name) => service(name).command)).to.deep.equal([
      ["svc-admin", "migrate"],
      ["api"],
      ["dispatcher"],
    ]);
    expect(commands.map((command) => command.name())).to.include("migrate");
  });

  it("sets variables that the service knows", () => {
    for (const name of programs)
      expect(variables).to.include.members(Object.keys(service(name).environment ?? {}));
  });

  it("publishes only the API, on loopback by default", () => {
    const ports = Object.values(services).flatMap((one) => one.ports ?? []);

    expect(ports).to.deep.equal([
      `\${SVC_PUBLISH:-127.0.0.1:${settings["http.port"].default}}:${settings["http.port"].default}`,
    ]);
  });

  it("waits for the dependencies of a service: a probe for those that stay, no restart for those that end", () => {
    for (const { depends_on: needs = {} } of Object.values(services)) {
      for (const [name, { condition }] of Object.entries(needs)) {
        const { healthcheck, restart = "no" } = service(name);
        if (condition === "service_healthy") expect(healthcheck?.test, name).to.be.an("array");
        else expect([condition, restart], name).to.deep.equal(["service_completed_successfully", "no"]);
      }
    }
    for (const name of ["api", "dispatcher"])
      expect(Object.keys(service(name).depends_on ?? {})).to.have.members([
        "migrate",
        "postgres",
        "rabbitmq",
      ]);
  });

  it("gives an attempt in flight the time to end", () => {
    const seconds = Number(service("dispatcher").stop_grace_period?.replace(/s$/, ""));

    expect(seconds).to.be.greaterThan(settings["webhooks.timeout"].default + 15);
  });

  it("confines every container of the image", () => {
    for (const name of ["keys", ...programs])
      expect(service(name), name).to.deep.include({ read_only: true, cap_drop: ["ALL"] });
  });

  it("builds the image on the base of the Dockerfile, and lets every image be named by digest", () => {
    const [, base] = /^ARG NODE_IMAGE=(\S+)$/m.exec(readFileSync("Dockerfile", "utf8")) ?? [];

    for (const { image, build } of Object.values(services)) {
      expect(image).to.match(/^\$\{SVC_[A-Z_]*IMAGE:-.+\}$/);
      if (build !== undefined)
        expect(build).to.deep.equal({ context: ".", args: { NODE_IMAGE: `\${SVC_NODE_IMAGE:-${base}}` } });
    }
    for (const name of ["keys", ...programs]) expect(service(name).build, name).to.be.an("object");
  });

  it("mounts existing volumes, and each secret one where it is read", () => {
    const mounts = Object.values(services).flatMap((one) => one.volumes ?? []);
    const names = mounts
      .map((mount) => mount.split(":")[0] ?? "")
      .filter((source) => !source.startsWith("."));

    expect(new Set(names)).to.deep.equal(new Set(Object.keys(volumes)));
    for (const name of programs) {
      const files = Object.entries(service(name).environment ?? {}).filter(([key]) => key.endsWith("_FILE"));
      expect(files.map(([, file]) => file.startsWith("/run/keys/"))).to.deep.equal([true, true, true, true]);
      expect(service(name).volumes).to.include("keys:/run/keys:ro");
    }
    expect(service("postgres").volumes).to.include("postgres-password:/docker-entrypoint-initdb.d:ro");
    expect(service("postgres").environment).to.deep.equal({
      POSTGRES_USER: "postgres",
      POSTGRES_DB: "svc",
      POSTGRES_PASSWORD_FILE: "/docker-entrypoint-initdb.d/password",
    });
  });

  describe("service keys", () => {
    let folder: string;

    beforeEach(() => {
      folder = makeFolder("compose-keys");
      for (const name of ["keys", "postgres", "rabbitmq"]) mkdirSync(join(folder, name));
    });

    afterEach(() => removeFolder(folder));

    it("makes passwords and keys that the service, PostgreSQL and RabbitMQ share", async () => {
      await makeKeys(folder);

      const { database, broker, secretKey, previousSecretKeys } = configOf(folder);
      const [databaseUrl, brokerUrl] = [new URL(database.url ?? ""), new URL(broker.url ?? "")];
      const account = readFileSync(join(folder, "rabbitmq/svc.conf"), "utf8");
      expect(secretKey).to.have.length(32);
      expect(previousSecretKeys).to.deep.equal([]);
      expect(databaseUrl).to.include({
        username: "svc",
        hostname: "postgres",
        port: "5432",
        pathname: "/svc",
      });
      expect(brokerUrl).to.include({ username: "svc", hostname: "rabbitmq", port: "5672" });
      expect(databaseUrl.password).to.match(/^[0-9a-f]{48}$/);
      const superuser = readFileSync(join(folder, "postgres/password"), "utf8");
      expect(superuser).to.match(/^[0-9a-f]{48}$/);
      expect(new Set([superuser, databaseUrl.password, brokerUrl.password]).size).to.equal(3);
      expect(account).to.include(`default_user = svc\ndefault_pass = ${brokerUrl.password}\n`);
    });

    it("is changed as the guide describes, keeps every previous key, and forgets them", async () => {
      const guide = readFileSync("docs/production.md", "utf8");
      const given = (pattern: RegExp): Promise<unknown> => {
        const [, script = ""] = pattern.exec(guide) ?? [];
        return run("sh", ["-euc", script.replace("/made", folder)]);
      };
      await makeKeys(folder);
      const first = configOf(folder);

      await given(/keys '(cd \/made[^']+)'/);
      const changed = configOf(folder);
      await given(/keys '(cd \/made[^']+)'/);
      const again = configOf(folder);
      await given(/keys '(: > [^']+)'/);

      expect(changed.previousSecretKeys).to.deep.equal([first.secretKey]);
      expect(again.previousSecretKeys).to.deep.equal([changed.secretKey, first.secretKey]);
      expect(again.secretKey).to.have.length(32).and.not.deep.equal(changed.secretKey);
      expect(configOf(folder)).to.deep.include({ secretKey: again.secretKey, previousSecretKeys: [] });
    });

    it("makes a role that owns only the service's database, and migrates it", async function () {
      this.timeout(60_000);
      await makeKeys(folder);
      const server = await startPrivatePostgres();
      try {
        await psql(server.url, { sql: "CREATE DATABASE svc" });
        const inDatabase = Object.assign(new URL(server.url), { pathname: "/svc" }).href;
        await psql(inDatabase, { file: join(folder, "postgres/role.sql") });
        const { password } = new URL(readFileSync(join(folder, "keys/database-url"), "utf8"));
        const url = Object.assign(new URL(inDatabase), { username: "svc", password }).href;

        const role =
          "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles";
        expect(await psql(url, { sql: `${role} WHERE rolname = current_user` })).to.equal("f|f|f|f|f");
        const owned = "SELECT datname FROM pg_database WHERE datdba = current_user::regrole";
        expect(await psql(url, { sql: owned })).to.equal("svc");
        await admin(["migrate"], { DATABASE_URL: url, SVC_CONFIG_DIR: "config" });
        expect(
          await psql(url, {
            sql: "SELECT to_regclass('svc.events') IS NOT NULL, to_regclass('orders') IS NOT NULL",
          }),
        ).to.equal("t|t");
      } finally {
        await server.dispose();
      }
    });

    it("leaves existing files unchanged", async () => {
      const content = (): readonly string[] =>
        ["keys", "postgres", "rabbitmq"].flatMap((part) =>
          readdirSync(join(folder, part)).map((name) => readFileSync(join(folder, part, name), "utf8")),
        );
      await makeKeys(folder);
      const before = content();

      await makeKeys(folder);

      expect(content()).to.deep.equal(before).and.have.length(7);
    });
  });
});
