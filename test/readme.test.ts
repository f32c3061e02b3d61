import { expect } from "chai";
import type { Command } from "commander";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createAdminProgram } from "../src/cli/program.ts";
import { deadHeaders, exchanges, queues } from "../src/broker/topology.ts";
import { settings } from "../src/config/settings.ts";
import { signedHeaders } from "../src/deliveries/attempt/sign.ts";
import { deliveryStatuses } from "../src/deliveries/delivery.ts";
import { errorStatus } from "../src/kit/errors.ts";
import { signatures } from "../src/validation/syntax.ts";
import { checkFiles } from "./mapping/mapping-folder.ts";
import { createMemoryTerminal } from "./support/memory-terminal.ts";

function read(page: string): string {
  return readFileSync(new URL(`../${page}`, import.meta.url), "utf8");
}

/** Every page, by its path from the root. */
const pages: readonly string[] = [".", "docs", "docs/decisions", "helm"].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

/**
 * Returns the cells of the table that follows a marker such as `<!-- errors: … -->`, without its
 * head.
 */
function tableAfter(marker: string, page: string): readonly (readonly string[])[] {
  const [, table = ""] = new RegExp(`<!-- ${marker}:[^\\n]*-->\\n((?:\\|.*\\n)+)`).exec(read(page)) ?? [];
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
  it("has at most 12 KB", () => {
    expect(Buffer.byteLength(read("README.md"))).to.be.at.most(12 * 1024);
  });
});

describe("the tables of docs", () => {
  it("list every error code with its status, and no other", () => {
    const documented = tableAfter("errors", "docs/errors.md").map(([status, code]) => [code, Number(status)]);

    expect(Object.fromEntries(documented)).to.deep.equal(errorStatus);
    expect(documented).to.have.length(Object.keys(errorStatus).length);
  });

  it("list every event of the log, and no other", () => {
    const documented = tableAfter("events", "docs/operations.md").flatMap(([names = ""]) =>
      names.split(", "),
    );
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) =>
      /^(?!console|cli).*\.ts$/.test(name),
    );
    const logged = sources.flatMap((name) =>
      [...read(`src/${name}`).matchAll(/event: "(request|[a-z_]+\.[a-z_]+)"/g)].map(
        ([, event = ""]) => event,
      ),
    );

    expect(documented.toSorted()).to.deep.equal([...new Set(logged)].toSorted());
  });

  it("list every setting with its variable, and no other", () => {
    const documented = tableAfter("settings", "docs/settings.md").map(([key, variable]) => [
      key,
      variable === "-" ? undefined : variable,
    ]);
    const actual = Object.entries(settings).map(([key, setting]) => [
      key,
      "env" in setting ? setting.env : undefined,
    ]);

    expect(documented).to.deep.equal(actual);
  });

  it("give the defaults that the settings have", () => {
    const documented = Object.fromEntries(
      tableAfter("settings", "docs/settings.md").map(([key, , value]) => [key, value]),
    );
    const withDefault = Object.entries(settings).flatMap(([key, setting]) =>
      "default" in setting ? [[key, [setting.default].flat().join(", ")]] : [],
    );

    expect(documented).to.include(Object.fromEntries(withDefault));
  });

  it("list every command of svc-admin with its options, and no other", () => {
    const documented = tableAfter("commands", "docs/svc-admin.md").map(([usage = ""]) => ({
      name: usage.replace(/ (ID|NAME|\[?--).*$/, ""),
      options: [...usage.matchAll(/--[a-z-]+/g)].map(([option]) => option).toSorted(),
    }));

    expect(documented.toSorted(byName)).to.deep.equal(commandsOf(program()).toSorted(byName));
  });
});

describe("docs/mapping.md", () => {
  const page = read("docs/mapping.md");
  /** Returns the words in code of the first cells of a section's tables. */
  const named = (heading: string, cell: number): readonly string[] => {
    const [, section = ""] = new RegExp(`^## ${heading}\\n(.*?)^##`, "ms").exec(page) ?? [];
    const cells = section.split("\n").map((line) => (/^\| [`A-Z]/.test(line) ? line.split(" | ")[cell] : ""));
    return cells.flatMap((text = "") => [...text.matchAll(/`([\w]+)/g)].map(([, word = ""]) => word));
  };

  it("lists every key of a file and of a field, and no other", () => {
    const { properties, definitions } = JSON.parse(read("config/schema/resource.schema.json")) as {
      readonly properties: object;
      readonly definitions: { readonly field: { readonly properties: object } };
    };

    expect(named("Keys of a file", 0)).to.have.members(Object.keys(properties));
    expect(new Set(named("Fields", 0))).to.include.all.keys(...Object.keys(definitions.field.properties));
  });

  it("lists every validation rule, and no other", () => {
    expect(named("Validation", 1)).to.have.members(Object.keys(signatures));
  });

  it("has examples that load, like the one of the README", async () => {
    const [customers, invoices = "", orders = "", sample = ""] = [
      read("config/resources/customers.yaml"),
      ...[page, read("README.md")].flatMap((text) => yamlBlocks(text).filter(isWholeFile).toReversed()),
    ];
    const shop = await checkFiles({ "c.yaml": customers, "o.yaml": orders });
    const short = await checkFiles({ "c.yaml": customers, "o.yaml": sample });
    const existing = await checkFiles({
      "c.yaml": customers.replace(" id:", " customer_id:"),
      "i.yaml": invoices,
    });

    expect([shop, short, existing].flatMap(({ faults }) => faults)).to.deep.equal([]);
  });
});

describe("docs/webhooks.md", () => {
  const page = read("docs/webhooks.md");

  it("names every exchange, queue and header of RabbitMQ", () => {
    const names = [exchanges, queues, deadHeaders].flatMap((table) => Object.values(table));

    expect(names.filter((name) => !page.includes(`\`${name}\``))).to.deep.equal([]);
  });

  it("names every header of a delivery, and every status", () => {
    const headers = Object.keys(
      signedHeaders({
        signing: { secrets: ["new", "old"], headers: {} },
        body: [],
        eventUuid: "e",
        uuid: "d",
        sentAt: new Date(),
      }),
    );

    expect([...headers, ...deliveryStatuses].filter((name) => !page.includes(`\`${name}\``))).to.deep.equal(
      [],
    );
  });
});

describe("the documents", () => {
  const folders = [".ci", "config", "docs", "helm", "src"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  );
  const texts = [...folders, ...pages, "Dockerfile", "compose.yaml", "package.json"].filter((file) =>
    statSync(file).isFile(),
  );

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
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/\bnpm run (?:--\w+ )?([\w:-]+)/g)].map(([, name = ""]) => name),
    );

    expect(named).to.include("svc-admin");
    expect(Object.keys(scripts)).to.include.members(named);
  });
});

describe("the prose", () => {
  // Tables, code and generated pages may be wider. A link counts as its words.
  const prose = pages
    .filter((page) => !["helm/VALUES.md", "CONTRIBUTING.md"].includes(page))
    .flatMap((page) =>
      read(page)
        .replaceAll(/^```.*?^```/gms, "")
        .split("\n")
        .filter((line) => !/^(\||<!--)/.test(line))
        .map((line) => ({ page, line })),
    );

  it("is wrapped at 100 columns", () => {
    const wide = prose.filter(({ line }) => line.replaceAll(/\]\([^)]*\)/g, "]").length > 100);

    expect(wide).to.deep.equal([]);
  });

  it("uses plain words", () => {
    const banned = /\b(nobody|whoever|anew|in hand|mended?|mends|be it|at home|is told|are told)\b/i;
    const found = prose.filter(({ line }) => banned.test(line.replaceAll(/`[^`]*`/g, "")));

    expect(found).to.deep.equal([]);
  });

  it("names files that are there", () => {
    const cited = pages.flatMap((page) =>
      [...read(page).matchAll(/`((?:src|test|bench|prisma|config|helm|docs|\.ci)\/[\w./-]+\.\w+)`/g)].map(
        ([, file = ""]) => ({ page, file }),
      ),
    );

    expect(cited.length).to.be.greaterThan(50);
    expect(cited.filter(({ file }) => !existsSync(file))).to.deep.equal([]);
  });
});

describe("the code", () => {
  const files = ["src", "test", "bench", "prisma", "config", "helm"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(m?ts|sql|ya?ml)$/.test(name) && !name.includes("generated"))
      .map((name) => join(folder, name)),
  );

  it("cites existing pages and headings", () => {
    const cited = files.flatMap((file) =>
      [...read(file).matchAll(/\b(docs\/[\w/-]+\.md)(?:, "([^"\n]+)")?/g)].map(
        ([text, page = "", heading]) => ({
          file,
          text,
          isThere: existsSync(page) && (heading === undefined || headingsOf(page).includes(heading)),
        }),
      ),
    );

    expect(cited.length).to.be.greaterThan(5);
    expect(cited.filter(({ isThere }) => !isThere)).to.deep.equal([]);
  });
});

describe("docs/architecture.md", () => {
  it("follows a record in ten steps, each with its files", () => {
    const [, steps = ""] =
      /^## A record from POST to the receiver, in ten steps\n(.*?)^## /ms.exec(
        read("docs/architecture.md"),
      ) ?? [];
    const files = steps.split(/^\d+\. /m).map((step) => step.match(/`src\/[\w./-]+`/g) ?? []);

    expect(files).to.have.length(11);
    for (const named of files.slice(1)) expect(named).to.not.deep.equal([]);
  });

  it("has every folder of src in its tree", () => {
    const [, tree = ""] = /^```\nsrc\/\n(.*?)^```/ms.exec(read("docs/architecture.md")) ?? [];
    const named = [...tree.matchAll(/^ {2}([a-z]+)\//gm)].map(([, name = ""]) => name);

    expect(named.toSorted()).to.deep.equal(readdirSync("src").toSorted());
  });
});

describe("docs/decisions", () => {
  it("has a page for each number, with background, decision and consequence, and a list of them", () => {
    const names = readdirSync("docs/decisions").filter((name) => name !== "README.md");
    const headings = names.map((name) =>
      [...read(`docs/decisions/${name}`).matchAll(/^##? (.+)$/gm)].map(([, heading]) => heading),
    );
    const listed = [...read("docs/decisions/README.md").matchAll(/\]\((.+?)\) \| (.+) \|$/gm)].map(
      ([, name, title]) => [name, title],
    );

    expect(names.map((name) => Number(name.slice(0, 4)))).to.deep.equal(names.map((_, index) => index + 1));
    expect(listed).to.deep.equal(names.map((name, index) => [name, headings[index]?.[0]?.slice(6)]));
    for (const [, ...rest] of headings) expect(rest).to.deep.equal(["Background", "Decision", "Consequence"]);
  });
});

describe("links between the pages", () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => ({ page, target })),
  );

  it("lead to existing files and headings", () => {
    const broken = links.filter(({ page, target }) => {
      const [file = "", anchor] = target.split("#", 2);
      const path = file === "" ? page : join(dirname(page), file);
      return !existsSync(path) || (anchor !== undefined && !anchorsOf(path).has(anchor));
    });

    expect(links.length).to.be.greaterThan(10);
    expect(broken).to.deep.equal([]);
  });
});

function headingsOf(path: string): readonly string[] {
  return [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
}

/** Returns the anchors of a page as GitHub makes them. */
function anchorsOf(path: string): ReadonlySet<string> {
  return new Set(
    headingsOf(path).map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Returns whether a text is a whole mapping file. */
function isWholeFile(text: string): boolean {
  return /^name:/m.test(text);
}

function yamlBlocks(text: string): readonly string[] {
  return [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, block = ""]) => block);
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

/** Commands with an action, by their words; `--json` is common to all. */
function commandsOf(command: Command, words: readonly string[] = []): readonly Documented[] {
  const below = command.commands.flatMap((child) => commandsOf(child, [...words, child.name()]));
  // A group with arguments also has an action of its own.
  if (below.length > 0 && command.registeredArguments.length === 0) return below;
  const options = command.options.map(({ long }) => long ?? "").filter((long) => long !== "--json");
  return [{ name: words.join(" "), options: options.toSorted() }, ...below];
}
