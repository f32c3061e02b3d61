import { Ajv } from "ajv";
import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { settings } from "../../src/config/settings.ts";
import { describedValues, fileOf, readJson, valuesPage, withSettings } from "./generated.ts";

const again = "npx tsx test/chart/generate.ts";

function read(path: string): string {
  return readFileSync(fileOf(path), "utf8");
}

const values: unknown = parse(read("helm/values.yaml"));
const schema = readJson("helm/values.schema.json");

interface Group {
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Group>>;
}

/** Every path that a group of the schema allows, without those that Kubernetes defines. */
function pathsOf(group: Group, steps: readonly string[] = []): readonly string[] {
  if (group.properties === undefined) return [steps.join(".")];
  return Object.entries(group.properties).flatMap(([name, part]) => pathsOf(part, [...steps, name]));
}

/** The same paths of values, as deep as the schema goes. */
function pathsIn(value: unknown, group: Group, steps: readonly string[] = []): readonly string[] {
  if (group.properties === undefined) return [steps.join(".")];
  return Object.entries(value as object).flatMap(([name, part]: [string, unknown]) =>
    pathsIn(part, group.properties?.[name] ?? {}, [...steps, name]),
  );
}

/** Merges values over the file as `helm -f` does. */
function merged(base: unknown, over: unknown): unknown {
  const areMaps = [base, over].every((one) => typeof one === "object" && one !== null && !Array.isArray(one));
  if (!areMaps) return over;
  const result = new Map(Object.entries(base as object));
  for (const [key, value] of Object.entries(over as object))
    result.set(key, result.has(key) ? merged(result.get(key), value) : value);
  return Object.fromEntries(result);
}

describe("helm/VALUES.md", () => {
  it(`lists the values as values.yaml has them (${again})`, () => {
    expect(read("helm/VALUES.md")).to.equal(valuesPage(describedValues(read("helm/values.yaml"))));
  });
});

describe("helm/values.schema.json", () => {
  it(`has the settings as config/schema/service.schema.json has them (${again})`, () => {
    expect(schema).to.deep.equal(withSettings(schema, readJson("config/schema/service.schema.json")));
  });

  it("knows every value of values.yaml, and no other", () => {
    const known = pathsOf(schema).filter((path) => path !== "global");

    expect(pathsIn(values, schema)).to.have.members(known);
  });

  it("refuses unknown keys in every group", () => {
    const open = (group: Group, steps: readonly string[]): readonly string[] =>
      group.properties === undefined
        ? []
        : [
            ...(group.additionalProperties === false ? [] : [steps.join(".")]),
            ...Object.entries(group.properties).flatMap(([name, part]) => open(part, [...steps, name])),
          ];

    expect(open(schema, [])).to.deep.equal([]);
  });

  it("omits an empty group, because Helm removes such a key", () => {
    const unnamed = (group: Group): readonly string[] =>
      Object.entries(group.properties ?? {}).flatMap(([name, part]) =>
        part.properties === undefined
          ? []
          : [...(group.required?.includes(name) === true ? [] : [name]), ...unnamed(part)],
      );

    expect(unnamed(schema)).to.deep.equal([]);
  });

  const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema);
  for (const file of readdirSync(fileOf("helm/ci"))) {
    it(`takes helm/ci/${file}`, () => {
      validate(merged(values, parse(read(`helm/ci/${file}`))));

      expect(validate.errors).to.equal(null);
    });
  }
});

describe("helm/Chart.yaml", () => {
  it("has the version of package.json", () => {
    const { version, appVersion } = parse(read("helm/Chart.yaml")) as Record<string, string>;

    expect([version, appVersion]).to.deep.equal(Array(2).fill(readJson("package.json")["version"]));
  });

  it("names the oldest Kubernetes that .ci/helm checks", () => {
    const [, oldest] = /^kubernetes="(\S+)/m.exec(read(".ci/helm")) ?? [];

    expect(parse(read("helm/Chart.yaml"))).to.include({ kubeVersion: `>=${oldest}-0` });
  });
});

describe("the templates", () => {
  const templates = readdirSync(fileOf("helm/templates"))
    .filter((name) => /\.(yaml|tpl)$/.test(name))
    .map((name) => read(`helm/templates/${name}`))
    .join("\n");
  const known = new Set([
    "SVC_CONFIG_DIR",
    ...Object.values(settings).flatMap((setting) => ("env" in setting ? [setting.env] : [])),
  ]);

  it("set variables that the service reads", () => {
    const set = [...templates.matchAll(/- name: ([A-Z][A-Z_]+)$|"name" "([A-Z_]+)"/gm)].map(
      ([, plain, secret]) => plain ?? secret,
    );

    expect(set).to.include.members(["SVC_CONFIG_DIR", "DATABASE_URL", "AMQP_URL", "SVC_SECRET_KEY"]);
    for (const name of set.filter((one) => one !== "OTEL_EXPORTER_OTLP_ENDPOINT"))
      expect(known).to.include(name);
  });

  it("keep every secret out of the settings, which everyone may read", () => {
    for (const [key, setting] of Object.entries(settings))
      if ("isSecret" in setting) expect(templates).to.match(new RegExp(`^ {2}"${key}" "`, "m"));
  });
});
