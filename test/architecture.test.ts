import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** Which parts a part may import from; every part may import from itself. Types of a definition, an event and a caller are free. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  bin: ["programs", "kit", "users"],
  programs: [
    "programs",
    "resources",
    "events",
    "subscriptions",
    "deliveries",
    "users",
    "http",
    "broker",
    "db",
    "kit",
  ],
  resources: ["events", "http", "db", "kit"],
  events: ["broker", "db", "kit"],
  subscriptions: ["http", "db", "kit"],
  deliveries: ["events", "subscriptions", "http", "broker", "db", "kit"],
  users: ["http", "db", "kit"],
  http: ["kit"],
  broker: ["kit"],
  db: ["kit"],
  kit: [],
};

/** Shapes that any part may name in a type. */
const sharedTypes = ["resources/definition.ts", "events/event.ts", "users/caller.ts"];

/** Packages with one home each. */
const homes: readonly { readonly package: string; readonly files: RegExp }[] = [
  { package: "koa", files: /^(http\/|api\.ts$|users\/authenticate\.ts$|[a-z]+\/routes\.ts$)/ },
  { package: "@koa/router", files: /^(http\/|api\.ts$|[a-z]+\/routes\.ts$)/ },
  { package: "koa-bodyparser", files: /^http\// },
  { package: "amqplib", files: /^broker\// },
  { package: "commander", files: /(^|\/)([a-z-]+-)?commands?\.ts$|^admin(-context)?\.ts$/ },
  { package: "got", files: /^deliveries\// },
  { package: "yaml", files: /^(yaml-source|config|settings[a-z-]*)\.ts$|^resources\/load/ },
  { package: "pino", files: /^log\.ts$/ },
  // Loaded by a dynamic import only, when tracing is on.
  { package: "@opentelemetry", files: /^tracing-sdk\.ts$/ },
  { package: "prom-client", files: /^metrics(\.ts$|\/)/ },
];

const programs = [
  "api.ts",
  "dispatcher.ts",
  "admin.ts",
  "admin-context.ts",
  "audit-command.ts",
  "audit-list.ts",
  "configuration-audit.ts",
  "foundation.ts",
  "configuration.ts",
  "program.ts",
  "start.ts",
  "serve.ts",
  "reload.ts",
  "reload-command.ts",
  "processes.ts",
  "migration.ts",
  "migration-command.ts",
  "greeting.ts",
  "health.ts",
  "running.ts",
  "scrape-sources.ts",
];
const rooms = ["resources", "events", "subscriptions", "deliveries", "users", "http", "broker", "db", "bin"];

interface Import {
  readonly from: string;
  readonly target: string;
  readonly isTypeOnly: boolean;
}

function partOf(file: string): string {
  const [folder = ""] = file.split("/");
  if (rooms.includes(folder)) return folder;
  return programs.includes(file) ? "programs" : "kit";
}

function files(): readonly string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.startsWith(join("db", "generated")),
  );
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(src, file), "utf8");
  return [...text.matchAll(/^(?:import|export)\s+(type\s+)?[^;]*?from\s+"([^"]+)";/gms)].map(
    ([, type, target = ""]) => ({
      from: file,
      isTypeOnly: type !== undefined,
      target: target.startsWith(".") ? relative(src, join(src, dirname(file), target)) : target,
    }),
  );
}

describe("architecture", () => {
  const imports = files().flatMap(importsOf);
  const own = imports.filter(({ target }) => target.endsWith(".ts"));

  it("reads the imports of every part", () => {
    const parts = new Set(own.map(({ from }) => partOf(from)));

    expect([...parts].toSorted()).to.deep.equal(Object.keys(allowed).toSorted());
  });

  it("lets each part import only what the table allows", () => {
    const forbidden = own
      .filter(({ isTypeOnly, target }) => !(isTypeOnly && sharedTypes.includes(target)))
      .filter(({ from, target }) => {
        const [part, other] = [partOf(from), partOf(target)];
        return part !== other && !allowed[part]?.includes(other);
      })
      .map(({ from, target }) => `${from} -> ${target}`);

    expect(forbidden).to.deep.equal([]);
  });

  it("keeps each package in its home", () => {
    const strays = homes.flatMap(({ package: name, files: home }) =>
      imports
        .filter(({ target }) => target === name || target.startsWith(`${name}/`))
        .filter(({ from, isTypeOnly }) => !home.test(from) && !isTypeOnly)
        .map(({ from }) => `${from} imports ${name}`),
    );

    expect(strays).to.deep.equal([]);
  });

  it("reads the environment only in config.ts and exits only in bin/", () => {
    const offenders = files().filter((file) => {
      const text = readFileSync(join(src, file), "utf8");
      const readsEnvironment =
        /process\.env\b/.test(text) && file !== "config.ts" && !file.startsWith("bin/");
      return readsEnvironment || (/process\.exit\(/.test(text) && !file.startsWith("bin/"));
    });

    expect(offenders).to.deep.equal([]);
  });

  it("has no default export, no barrel and no file over 400 lines", () => {
    const offenders = files().filter((file) => {
      const text = readFileSync(join(src, file), "utf8");
      return /^export default/m.test(text) || /^export \* from/m.test(text) || text.split("\n").length > 401;
    });

    expect(offenders).to.deep.equal([]);
  });
});
