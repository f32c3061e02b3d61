import { expect } from "chai";
import type { Command } from "commander";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createAdminProgram } from "../src/cli/program.ts";
import { errorStatus } from "../src/kit/errors.ts";
import { settings } from "../src/config/settings.ts";
import { createMemoryTerminal } from "./support/memory-terminal.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** The cells of the table that follows a marker such as `<!-- errors: … -->`, without its head. */
function tableAfter(marker: string): readonly (readonly string[])[] {
  const [, table = ""] = new RegExp(`<!-- ${marker}:[^\\n]*-->\\n((?:\\|.*\\n)+)`).exec(readme) ?? [];
  return table
    .trim()
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split(" | ")
        .map((cell) => cell.trim().replaceAll("`", "")),
    );
}

describe("README", () => {
  it("lists every error code with its status, and no other", () => {
    const documented = tableAfter("errors").map(([status, code]) => [code, Number(status)]);

    expect(Object.fromEntries(documented)).to.deep.equal(errorStatus);
    expect(documented).to.have.length(Object.keys(errorStatus).length);
  });

  it("lists every setting with its variable, and no other", () => {
    const documented = tableAfter("settings").map(([key, variable]) => [
      key,
      variable === "-" ? undefined : variable,
    ]);
    const actual = Object.entries(settings).map(([key, setting]) => [
      key,
      "env" in setting ? setting.env : undefined,
    ]);

    expect(documented).to.deep.equal(actual);
  });

  it("gives the defaults that the settings have", () => {
    const documented = Object.fromEntries(tableAfter("settings").map(([key, , value]) => [key, value]));
    const withDefault = Object.entries(settings).flatMap(([key, setting]) =>
      "default" in setting ? [[key, [setting.default].flat().join(", ")]] : [],
    );

    expect(documented).to.include(Object.fromEntries(withDefault));
  });

  it("lists every command of svc-admin with its options, and no other", () => {
    const documented = tableAfter("commands").map(([usage = ""]) => ({
      name: usage.replace(/ (ID|\[?--).*$/, ""),
      options: [...usage.matchAll(/--[a-z-]+/g)].map(([option]) => option).toSorted(),
    }));

    expect(documented.toSorted(byName)).to.deep.equal(commandsOf(program()).toSorted(byName));
  });
});

describe("the documents", () => {
  const folders = [".ci", "config", "docs", "helm", "src"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  );
  const texts = [
    ...folders,
    "README.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "compose.yaml",
    "package.json",
  ].filter((file) => statSync(file).isFile());

  it("never have npx look for svc or svc-admin, which it would take from a registry outside a built clone", () => {
    const offenders = texts.filter((file) =>
      /\b(npx|npm exec) (-\S+ )*svc\b/.test(readFileSync(file, "utf8")),
    );

    expect(texts).to.include.members([
      "README.md",
      "CONTRIBUTING.md",
      "helm/templates/NOTES.txt",
      "Dockerfile",
    ]);
    expect(offenders).to.deep.equal([]);
  });

  it("name scripts that package.json has", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const named = ["README.md", "CONTRIBUTING.md", "docs/production.md", "docs/operations.md"].flatMap(
      (page) => [...readFileSync(page, "utf8").matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = ""]) => name),
    );

    expect(named).to.include("svc-admin");
    expect(Object.keys(scripts)).to.include.members(named);
  });
});

describe("links between the pages", () => {
  const pages = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/operations.md",
    "docs/production.md",
    "helm/README.md",
  ];
  const links = pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => ({ page, target })),
  );

  it("lead to files, and to headings that are there", () => {
    const broken = links.filter(({ page, target }) => {
      const [file = "", anchor] = target.split("#", 2);
      const path = file === "" ? page : join(dirname(page), file);
      return !existsSync(path) || (anchor !== undefined && !anchorsOf(path).has(anchor));
    });

    expect(links.length).to.be.greaterThan(10);
    expect(broken).to.deep.equal([]);
  });
});

/** As GitHub makes them. */
function anchorsOf(path: string): ReadonlySet<string> {
  const headings = [...readFileSync(path, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

interface Documented {
  readonly name: string;
  readonly options: readonly string[];
}

function program(): Command {
  return createAdminProgram({ env: {}, cwd: "/", terminal: createMemoryTerminal() });
}

function byName(one: Documented, other: Documented): number {
  return one.name < other.name ? -1 : 1;
}

/** Commands that do something, by their words; `--json` is common to all. */
function commandsOf(command: Command, words: readonly string[] = []): readonly Documented[] {
  if (command.commands.length > 0) {
    return command.commands.flatMap((child) => commandsOf(child, [...words, child.name()]));
  }
  const options = command.options.map(({ long }) => long ?? "").filter((long) => long !== "--json");
  return [{ name: words.join(" "), options: options.toSorted() }];
}
