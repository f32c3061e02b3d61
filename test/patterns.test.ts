import { expect } from "chai";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { createDateReader } from "../src/validation/dates.ts";
import { API } from "typescript/unstable/sync";
import {
  isCallExpression,
  isIdentifier,
  isNewExpression,
  isRegularExpressionLiteral,
} from "typescript/unstable/ast/is";
import type { Node } from "typescript/unstable/ast";
import { proven, provenBy } from "./proven-patterns.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const catalog = "reads names and definitions of the operator's own database, once for each import";

/** Literals that the checker reports, or takes long for, and why they may stay. */
const excused: Readonly<Record<string, string>> = {
  'src/validation/syntax.ts /\\s*(?:"((?:[^"]|"")*)"|([^,]*))\\s*(?:,|$)/gy':
    "reads one rule of the operator's mapping file or code module, when it is loaded",
  "src/cli/migrate-command.ts /\\s*[\\r\\n]+\\s*/g":
    "reads statements that were made from the operator's mapping files",
  "src/users/token.ts /^bearer(?: +(.*))?$/i":
    "reads a header, in which nothing can follow what `.` does not match",
  "src/mapping/native.ts /\\(.*$/": "reads the name of a type in the operator's mapping file",
  "src/migration/hand-migrations.ts /^-- svc: *(.*?) *$/": "reads a line of the operator's own migration",
  "src/migration/existing-table.ts /\\(.*\\)|\\[\\]$/g": "reads the name of a type, as PostgreSQL gives it",
  "src/querying/transform.ts /\\.?0+$/": "reads the 12 characters of a time of day",
  'src/mapping/sql-text.ts /^(.+)::(?:"[^"]+"|[\\w .]|\\.)+(?:\\(\\d+(?:,\\s*-?\\d+)?\\))?(?: with(?:out)? time zone)?(?:\\[\\])*$/s':
    catalog,
  "src/migration/managed-tables.ts /^The `([^`]+)` column on the `([^`]+)` table would be dropped and recreated/s":
    "reads what the schema engine says of the operator's mapping files",
  "src/mapping/import/names.ts /([A-Z]+)([A-Z][a-z]+)/g": catalog,
  "src/mapping/import/names.ts /_+$/": catalog,
  "src/mapping/import/names.ts /^_+|_+$/g": catalog,
};

/** Places that build patterns, and why that is safe. */
const builders: Readonly<Record<string, string>> = {
  "src/kit/cli-output.ts": "a word of a fixed width",
  "src/migration/statements.ts":
    "read the schema engine's statements; of literals, with names that end at a quote",
  "src/validation/dates.ts": "tried below; gets texts of at most 64 characters",
  "src/validation/patterns.ts": "compiled for its faults, and never run",
  "src/mapping/import/patterns.ts": "of the operator's own words on the command line, and names of tables",
  "src/mapping/import/view-sources.ts": "of literals, for the definition of a view",
  "src/mapping/temporal.ts": "of literals with a bound on every repetition",
  "src/openapi/examples.ts": "of the operator's mapping files, for short texts of our own",
};

/** Returns the checker's verdict; the same at every run. */
let verdictOn: (source: string, flags: string) => string;

/** When set, everything is proven again, which takes minutes. */
const provesAll = process.env["SVC_TEST_PROVE"] !== undefined;

/** Limited by steps alone: a limit of time gives other verdicts on a busy machine. */
const untimed = { timeout: null, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

function isSafe(source: string, flags: string): boolean {
  return (!provesAll && proven.has(`/${source}/${flags}`)) || verdictOn(source, flags) === "safe";
}

interface Patterns {
  /** `src/file.ts /pattern/flags`. */
  readonly literals: readonly string[];
  /** Files with `new RegExp` or `RegExp()`. */
  readonly builders: readonly string[];
}

/** Returns all patterns of the program's own syntax trees. */
function patternsOf(project: string): Patterns {
  const api = new API({ cwd: root });
  try {
    const [opened] = api.updateSnapshot({ openProjects: [project] }).getProjects();
    const names = opened?.program.getSourceFileNames() ?? [];
    const literals = new Set<string>();
    const found = new Set<string>();
    for (const name of names) {
      const file = relative(root, name);
      if (!file.startsWith("src/")) continue;
      const visit = (node: Node): void => {
        if (isRegularExpressionLiteral(node)) literals.add(`${file} ${node.text}`);
        if (isNewExpression(node) || isCallExpression(node)) {
          if (isIdentifier(node.expression) && node.expression.text === "RegExp") found.add(file);
        }
        node.forEachChild(visit);
      };
      const source = opened?.program.getSourceFile(name);
      if (source !== undefined) visit(source);
    }
    return { literals: [...literals], builders: [...found] };
  } finally {
    api.close();
  }
}

/** Returns the arguments of `new RegExp` during `run`. */
async function builtDuring(run: () => Promise<void>): Promise<readonly RegExp[]> {
  const Native = RegExp;
  const built: RegExp[] = [];
  globalThis.RegExp = new Proxy(Native, {
    construct(target, args: [string, string?]) {
      const pattern = new target(...args);
      built.push(pattern);
      return pattern;
    },
  });
  try {
    await run();
  } finally {
    globalThis.RegExp = Native;
  }
  return built;
}

/** Returns the patterns that readers of dates are built from. */
function builtForDates(): Promise<readonly RegExp[]> {
  return builtDuring(async () => {
    const watched = (await import(
      `${new URL("../src/validation/dates.ts", import.meta.url).href}?watched`
    )) as { readonly createDateReader: typeof createDateReader };
    for (const format of [
      "Y-m-d H:i:s",
      "j.n.y G:i",
      "D, d M Y H:i:s O",
      "l j F Y g:ia",
      "U",
      "H v P",
      "njGy",
    ])
      watched.createDateReader(format);
  });
}

describe("patterns of the code", () => {
  let patterns: Patterns;
  let datePatterns: readonly RegExp[];

  before(async () => {
    // The one in JavaScript, in this process: a JVM or a binary may be missing.
    process.env["RECHECK_SYNC_BACKEND"] = "pure";
    const { checkSync } = await import("recheck");
    verdictOn = (source, flags) => checkSync(source, flags, untimed).status;
    patterns = patternsOf(fileURLToPath(new URL("../tsconfig.json", import.meta.url)));
    datePatterns = await builtForDates();
  });

  it("are found by their syntax, more than 100", () => {
    expect(patterns.literals).to.have.length.above(100);
    expect(patterns.literals).to.include("src/validation/values.ts /^[+-]?(?:0|[1-9]\\d*)$/");
  });

  it("are told apart by the checker: the one for numbers that held the process for 92 s is found", () => {
    expect(verdictOn(String.raw`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$`, "")).to.equal("vulnerable");
    expect(verdictOn(String.raw`^[+-]?\d*\.?(\d*)$`, "")).to.equal("vulnerable");
    expect(verdictOn("(a|a)+$", "")).to.equal("vulnerable");
  });

  it("take time that grows no faster than the text, but for those excused", function () {
    this.timeout(provesAll ? 1_800_000 : Math.max(this.timeout(), 180_000));
    const found = patterns.literals.filter((literal) => {
      if (Object.hasOwn(excused, literal)) return false;
      const end = literal.lastIndexOf("/");
      return !isSafe(literal.slice(literal.indexOf(" /") + 2, end), literal.slice(end + 1));
    });
    expect(found).to.deep.equal([]);
    expect(patterns.literals).to.include.members(Object.keys(excused));
  });

  it("are put together in known places only", () => {
    expect(patterns.builders.toSorted()).to.deep.equal(Object.keys(builders).toSorted());
  });

  it("are proven by the checker that is installed, where they are not proven again", () => {
    const { version } = JSON.parse(
      readFileSync(new URL("../node_modules/recheck/package.json", import.meta.url), "utf8"),
    ) as { readonly version: string };
    expect(version, "prove again with SVC_TEST_PROVE=1, then change provenBy").to.equal(provenBy);
    const literals = patterns.literals.map((literal) => literal.slice(literal.indexOf(" /") + 1));
    const dates = datePatterns.map(({ source, flags }) => `/${source}/${flags}`);
    expect([...proven].filter((one) => ![...literals, ...dates].includes(one))).to.deep.equal([]);
  });

  it("for dates, which are put together, are linear too", function () {
    if (provesAll) this.timeout(1_800_000);
    expect(datePatterns).to.have.length.above(8);
    for (const { source, flags } of datePatterns) expect(isSafe(source, flags), source).to.equal(true);
  });
});
