import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../src", import.meta.url));

/**
 * The folders of `src`, from the top down, with the folders that each may import, apart from
 * itself, types included. Every part may import the folders below the rooms, from `validation` on,
 * in the order of this table.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  bin: ["app", "cli"],
  cli: ["app", "rooms", "mapping", "migration"],
  app: ["rooms", "querying", "mapping", "migration"],

  openapi: ["operations", "deliveries", "subscriptions", "users", "resources", "mapping", "querying"],
  operations: ["deliveries", "resources", "mapping", "querying"],
  deliveries: ["subscriptions", "events", "mapping", "querying"],
  subscriptions: ["events", "resources", "mapping", "querying"],
  events: ["resources", "mapping", "querying"],
  resources: ["mapping", "querying", "migration"],
  users: ["mapping", "querying"],

  querying: ["mapping"],
  migration: ["mapping"],
  mapping: [],
  validation: [],
  outbound: [],
  http: [],
  broker: [],
  embedded: [],
  db: [],
  config: [],
  telemetry: [],
  kit: [],

  console: [],
};

const rooms = ["openapi", "operations", "deliveries", "subscriptions", "events", "resources", "users"];
/** Each may import those after it. */
const base = ["validation", "outbound", "http", "broker", "embedded", "db", "config", "telemetry", "kit"];

function mayImport(part: string, other: string): boolean {
  if (part === other) return true;
  // The console runs in browsers: it uses nothing of the server, and the server nothing of it.
  if (part === "console" || other === "console") return false;
  if (base.includes(other)) return base.indexOf(part) < base.indexOf(other);
  const named = allowed[part] ?? [];
  return named.includes(other) || (named.includes("rooms") && rooms.includes(other));
}

/** Packages that one folder alone may import. */
const homes: readonly { readonly package: string; readonly files: RegExp }[] = [
  { package: "koa", files: /^(http\/|users\/authenticate\.ts$|[a-z]+\/routes\.ts$)/ },
  { package: "@koa/router", files: /^(http\/|[a-z]+\/routes\.ts$)/ },
  { package: "koa-bodyparser", files: /^http\// },
  { package: "amqplib", files: /^broker\// },
  { package: "commander", files: /^cli\/|^kit\/cli-arguments\.ts$|\/([a-z-]+-)?commands?\.ts$/ },
  { package: "got", files: /^users\/fetch-json\.ts$/ },
  { package: "jose", files: /^users\/jwt\.ts$/ },
  { package: "yaml", files: /^config\// },
  { package: "pino", files: /^telemetry\/log\.ts$/ },
  { package: "react", files: /^console\// },
  { package: "react-dom", files: /^console\// },
  // Loaded by a dynamic import only, when tracing is on.
  { package: "@opentelemetry", files: /^telemetry\/tracing-sdk\.ts$/ },
  { package: "prom-client", files: /^telemetry\/metrics(\.ts$|\/)/ },
];

interface Import {
  readonly from: string;
  readonly target: string;
  readonly isTypeOnly: boolean;
  /** Loaded on demand. */
  readonly isLazy: boolean;
}

function partOf(file: string): string {
  return file.split("/")[0] ?? file;
}

function files(): readonly string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /\.[jt]sx?$/.test(file));
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(src, file), "utf8");
  const toImport = (target: string, isTypeOnly: boolean, isLazy: boolean): Import => ({
    from: file,
    isTypeOnly,
    isLazy,
    target: target.startsWith(".") ? relative(src, join(src, dirname(file), target)) : target,
  });
  return [
    ...[...text.matchAll(/^(?:import|export)\s+(type\s+)?[^;]*?from\s+"([^"]+)";/gms)].map(
      ([, type, target = ""]) => toImport(target, type !== undefined, false),
    ),
    ...[...text.matchAll(/await import\("([^"]+)"\)/g)].map(([, target = ""]) =>
      toImport(target, false, true),
    ),
  ];
}

describe("architecture", () => {
  const imports = files().flatMap(importsOf);
  const own = imports.filter(({ target }) => /\.tsx?$/.test(target));

  it("reads the imports of every part", () => {
    const parts = new Set(own.map(({ from }) => partOf(from)));

    expect([...parts].toSorted()).to.deep.equal(Object.keys(allowed).toSorted());
  });

  it("lets each part import only lower parts, types included", () => {
    const forbidden = own
      .filter(({ from, target }) => !mayImport(partOf(from), partOf(target)))
      .map(({ from, target }) => `${from} -> ${target}`);

    expect(forbidden).to.deep.equal([]);
  });

  it("allows each package only in its own folder", () => {
    const strays = homes.flatMap(({ package: name, files: home }) =>
      imports
        .filter(({ target }) => target === name || target.startsWith(`${name}/`))
        .filter(({ from, isTypeOnly }) => !home.test(from) && !isTypeOnly)
        .map(({ from }) => `${from} imports ${name}`),
    );

    expect(strays).to.deep.equal([]);
  });

  /** Returns the files of ours and the packages that a program loads at its start. */
  const loadedBy = (...programs: readonly string[]): readonly string[] => {
    const reached = new Set(programs);
    // A loop over a set also visits items that are added meanwhile.
    for (const file of reached)
      for (const { target } of imports.filter(
        ({ from, isTypeOnly, isLazy }) => from === file && !isTypeOnly && !isLazy,
      ))
        reached.add(target);
    return [...reached];
  };

  it("loads rarely used packages only when they are needed", () => {
    const rare = /^(got|@electric-sql\/|@opentelemetry\/|@prisma\/)/;
    const reached = loadedBy("bin/svc.ts", "app/run.ts");

    expect(reached.filter((target) => rare.test(target))).to.deep.equal([]);
    expect(reached).to.include("app/api.ts");
  });

  it("loads the service once signals are handled; until then they end the process", () => {
    const reached = loadedBy("bin/svc.ts");

    expect(reached.filter((target) => /^(app|http|db)\//.test(target))).to.deep.equal([]);
  });

  it("loads no HTTP server for a command", () => {
    const reached = loadedBy("bin/svc-admin.ts");

    expect(reached.filter((target) => /koa/.test(target))).to.deep.equal([]);
    expect(reached).to.include("deliveries/replay/replay-command.ts");
  });

  it("reads the environment only in config/load.ts and exits only in bin/", () => {
    const offenders = files().filter((file) => {
      const text = readFileSync(join(src, file), "utf8");
      const readsEnvironment =
        /process\.env\b/.test(text) && file !== join("config", "load.ts") && !file.startsWith("bin/");
      return readsEnvironment || (/process\.exit\(/.test(text) && !file.startsWith("bin/"));
    });

    expect(offenders).to.deep.equal([]);
  });

  it("has folders only at its root", () => {
    expect(readdirSync(src).filter((name) => name.includes("."))).to.deep.equal([]);
  });

  it("has no default export, no barrel and no file over 400 lines", () => {
    const offenders = files().filter((file) => {
      const text = readFileSync(join(src, file), "utf8");
      return /^export default/m.test(text) || /^export \* from/m.test(text) || text.split("\n").length > 401;
    });

    expect(offenders).to.deep.equal([]);
  });
});
