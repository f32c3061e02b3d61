import { expect } from "chai";
import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { settings } from "../../src/config/settings.ts";

describe("settings, as shipped in config/service.yaml", () => {
  const path = new URL("../../config/service.yaml", import.meta.url);
  const file = parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  const schema = JSON.parse(
    readFileSync(new URL("../../config/schema/service.schema.json", import.meta.url), "utf8"),
  ) as Schema;

  const ofFile = new Map(
    leaves(file, (value) => typeof value === "object" && value !== null && !Array.isArray(value)),
  );

  it("holds every setting with its default", () => {
    const defaults = Object.entries(settings).map(
      ([key, setting]) => [key, "default" in setting ? setting.default : null] as const,
    );

    expect(Object.fromEntries(ofFile)).to.deep.equal(Object.fromEntries(defaults));
  });

  it("names the variable of every setting that has one", () => {
    const text = readFileSync(path, "utf8");
    for (const setting of Object.values(settings)) {
      if ("env" in setting) expect(text).to.contain(setting.env);
      if ("isSecret" in setting) expect(text).to.contain(`${setting.env}_FILE`);
    }
  });

  it("is valid by its JSON Schema, which knows the same settings and defaults", () => {
    const validate = new Ajv({ allowUnionTypes: true }).compile(schema as object);
    expect(validate(file), JSON.stringify(validate.errors)).to.equal(true);

    const ofSchema = schemaLeaves(schema);
    expect(Object.fromEntries(ofSchema)).to.deep.equal(Object.fromEntries(ofFile));
  });
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly default?: unknown;
}

/** Defaults by key. */
function schemaLeaves({ properties = {} }: Schema, steps: readonly string[] = []): [string, unknown][] {
  return Object.entries(properties).flatMap(([name, child]): [string, unknown][] =>
    child.properties === undefined
      ? [[[...steps, name].join("."), child.default ?? null]]
      : schemaLeaves(child, [...steps, name]),
  );
}

function leaves(
  value: unknown,
  isGroup: (value: unknown) => boolean,
  steps: string[] = [],
): [string, unknown][] {
  if (!isGroup(value)) return [[steps.join("."), value]];
  return Object.entries(value as object).flatMap(([name, child]) => leaves(child, isGroup, [...steps, name]));
}
