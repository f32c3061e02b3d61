import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeFolder, removeFolder } from "../support/private-process.ts";

interface Entry {
  readonly [key: string]: unknown;
}

const good: Entry = { version: "1.2.3", integrity: "sha512-abc", license: "MIT" };
const policy = {
  licences: ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"],
  licenceExceptions: [{ package: "odd", licence: "EPL-2.0", reason: "x" }],
  installScripts: [{ package: "builder", reason: "x" }],
  advisories: [] as readonly object[],
};
const needed = {
  "node_modules/odd": { ...good, license: "EPL-2.0" },
  "node_modules/builder": { ...good, hasInstallScript: true },
};
const advisory = (id: string, severity: string): object => ({
  source: 1,
  name: "leaky",
  title: "It leaks",
  url: `https://github.com/advisories/${id}`,
  severity,
});
const report = (...via: readonly (object | string)[]): string =>
  JSON.stringify({ vulnerabilities: { leaky: { name: "leaky", via } } });
const acceptedUntil = (expires: string): readonly object[] => [
  { id: "GHSA-aaaa", expires, reason: "not reached" },
];
const noReport = JSON.stringify({ message: "405 Method Not Allowed", statusCode: 405 });

describe(".ci/audit", () => {
  let folder: string;
  beforeEach(() => {
    folder = makeFolder("audit");
  });
  afterEach(() => removeFolder(folder));

  /** Runs it on a lock file, with a stub in place of npm that prints `npm`. */
  function audit({
    packages = {},
    root = {},
    advisories = [],
    npm = report(),
  }: {
    readonly packages?: Readonly<Record<string, Entry>>;
    readonly root?: Entry;
    readonly advisories?: readonly object[];
    readonly npm?: string;
  }): { readonly status: number | null; readonly faults: readonly string[]; readonly output: string } {
    mkdirSync(join(folder, ".ci"), { recursive: true });
    mkdirSync(join(folder, "bin"), { recursive: true });
    const lock = { lockfileVersion: 3, packages: { "": root, ...needed, ...packages } };
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
    writeFileSync(join(folder, ".ci/audit-policy.json"), JSON.stringify({ ...policy, advisories }));
    writeFileSync(join(folder, "npm.json"), npm);
    writeFileSync(join(folder, "bin/npm"), `#!/bin/sh\ncat "${folder}/npm.json"\nexit 1\n`);
    chmodSync(join(folder, "bin/npm"), 0o755);
    const { status, stdout, stderr } = spawnSync(resolve(".ci/audit"), [folder], {
      encoding: "utf8",
      env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}` },
    });
    const faults = stderr
      .split("\n")
      .filter(Boolean)
      .map((line) => line.replace("fault: ", ""));
    return { status, faults, output: stdout };
  }

  it("passes a lock file without faults, and prints the number of packages", () => {
    const { status, faults, output } = audit({ packages: { "node_modules/@a/b": good } });

    expect({ status, faults }).to.deep.equal({ status: 0, faults: [] });
    expect(output).to.equal("3 production packages audited, 0 faults\n");
  });

  for (const [what, entry, fault] of [
    [
      "an unknown licence",
      { ...good, license: "AGPL-3.0" },
      "a 1.2.3: the licence AGPL-3.0 is neither in licences nor an exception",
    ],
    [
      "no licence",
      { version: "1.2.3", integrity: "sha512-abc" },
      "a 1.2.3: the licence none stated is neither in licences nor an exception",
    ],
    ["a range for a version", { ...good, version: "^1.2.3" }, "a ^1.2.3: expected an exact version"],
    ["no integrity", { ...good, integrity: undefined }, "a 1.2.3: expected an integrity of sha512"],
    ["a weak integrity", { ...good, integrity: "sha1-abc" }, "a 1.2.3: expected an integrity of sha512"],
    [
      "another host",
      { ...good, resolved: "https://user:hunter2@evil.example/a.tgz" },
      "a 1.2.3: comes from evil.example; expected the public registry",
    ],
    [
      "a repository",
      { ...good, resolved: "git+ssh://git@github.com/a/a.git#1" },
      "a 1.2.3: comes from github.com; expected the public registry",
    ],
    [
      "a file",
      { ...good, resolved: "file:a.tgz" },
      "a 1.2.3: comes from file:; expected the public registry",
    ],
    [
      "a link",
      { resolved: "packages/a", link: true, license: "MIT" },
      "a: a link to a folder; expected a package",
    ],
    [
      "an install script",
      { ...good, hasInstallScript: true },
      "a 1.2.3: runs a script when it is installed, which installScripts does not list",
    ],
    [
      "an install script for development",
      { ...good, hasInstallScript: true, dev: true },
      "a 1.2.3: runs a script when it is installed, which installScripts does not list",
    ],
    [
      "another package under an alias",
      { ...good, name: "b", license: "AGPL-3.0" },
      "b 1.2.3: the licence AGPL-3.0 is neither in licences nor an exception",
    ],
  ] as const) {
    it(`refuses ${what}`, () => {
      const { status, faults } = audit({ packages: { "node_modules/x/node_modules/a": entry } });

      expect({ status, faults }).to.deep.equal({ status: 1, faults: [fault] });
    });
  }

  it("refuses a range in package.json", () => {
    const root = { dependencies: { a: "^1.0.0" }, devDependencies: { b: "latest", c: "1.0.0" } };

    expect(audit({ root }).faults).to.deep.equal([
      "a: package.json asks for ^1.0.0; expected an exact version",
      "b: package.json asks for latest; expected an exact version",
    ]);
  });

  it("skips the licences of development packages", () => {
    expect(
      audit({ packages: { "node_modules/a": { ...good, license: "GPL-3.0", dev: true } } }).status,
    ).to.equal(0);
  });

  it("applies an exception only to the licence that it names", () => {
    const { faults } = audit({ packages: { "node_modules/odd": { ...good, license: "GPL-3.0" } } });

    expect(faults).to.deep.equal(["odd 1.2.3: the licence GPL-3.0 is neither in licences nor an exception"]);
  });

  it("reports unused exceptions", () => {
    const { status, output } = audit({ packages: { "node_modules/odd": good } });

    expect(status).to.equal(0);
    expect(output).to.include("note: audit-policy.json: odd is listed, and no longer needed\n");
  });

  for (const [expression, isFine] of [
    ["(MIT OR GPL-3.0)", true],
    ["GPL-3.0 OR MIT", true],
    ["MIT AND ISC", true],
    ["MIT and ISC", true],
    ["MIT AND GPL-3.0", false],
    ["MIT OR GPL-3.0 AND AGPL-3.0", true],
    ["(MIT OR GPL-3.0) AND AGPL-3.0", false],
    ["((MIT) AND (ISC OR X))", true],
    ["Apache-2.0 WITH LLVM-exception", true],
    ["Apache-2.0", false],
    ["MIT ISC", false],
    ["(MIT", false],
    ["MIT)", false],
    ["MIT OR", false],
    ["AND MIT", false],
    ["SEE LICENSE IN LICENSE", false],
    ["UNLICENSED", false],
  ] as const) {
    it(`${isFine ? "takes" : "refuses"} the licence ${expression}`, () => {
      const { status } = audit({ packages: { "node_modules/a": { ...good, license: expression } } });

      expect(status).to.equal(isFine ? 0 : 1);
    });
  }

  it("refuses a known vulnerability that is high or critical, once, by its public name", () => {
    const via = [
      advisory("GHSA-aaaa", "high"),
      advisory("GHSA-bbbb", "critical"),
      "other",
      advisory("GHSA-cccc", "moderate"),
    ];
    const { status, faults } = audit({ npm: report(...via, ...via) });

    expect({ status, faults }).to.deep.equal({
      status: 1,
      faults: ["leaky: GHSA-aaaa, high: It leaks", "leaky: GHSA-bbbb, critical: It leaks"],
    });
  });

  it("accepts a listed one, until its day", () => {
    const npm = report(advisory("GHSA-aaaa", "high"));

    const now = audit({ npm, advisories: acceptedUntil("2999-01-01") });
    const later = audit({ npm, advisories: acceptedUntil("2020-01-01") });

    expect([now.status, now.faults]).to.deep.equal([0, []]);
    expect(now.output).to.include("GHSA-aaaa, high: It leaks (accepted until 2999-01-01: not reached)");
    expect([later.status, later.faults]).to.deep.equal([
      1,
      ["leaky: GHSA-aaaa, high: It leaks (was accepted until 2020-01-01)"],
    ]);
  });

  for (const [what, npm] of [
    ["refuses", noReport],
    ["answers nonsense", "<html>"],
    ["answers nothing", ""],
  ] as const) {
    it(`reports it and continues when the registry ${what}`, () => {
      const { status, output } = audit({ npm });

      expect(status).to.equal(0);
      expect(output).to.include("NOT CHECKED for known vulnerabilities");
    });
  }

  it("finds no fault with this repository's lock file", () => {
    for (const file of ["package-lock.json", ".ci/audit-policy.json"]) {
      mkdirSync(join(folder, ".ci"), { recursive: true });
      writeFileSync(join(folder, file), readFileSync(file));
    }
    // Tests have no network: this npm finds nothing.
    const { status, stderr } = spawnSync(process.execPath, [resolve(".ci/audit"), folder], {
      encoding: "utf8",
      env: { PATH: folder },
    });

    expect([status, stderr]).to.deep.equal([0, ""]);
  });
});
