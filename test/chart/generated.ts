import { readFileSync, writeFileSync } from "node:fs";
import { isMap, isScalar, parseDocument, type YAMLMap } from "yaml";

/** A file of the repository, by its path from the root. */
export function fileOf(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}

export interface Value {
  /** The heading above it. */
  readonly section: string;
  /** Steps joined by dots. */
  readonly path: string;
  readonly default: unknown;
  readonly description: string;
}

/**
 * The values of a chart, in the order of the file. A value is a key with a comment above it; a map
 * whose keys have comments is not a value itself, and `## Heading` starts a section.
 *
 * @throws for a value that has no comment.
 */
export function describedValues(text: string): readonly Value[] {
  const { contents } = parseDocument(text);
  if (!isMap(contents)) throw new Error("expected a map of values");
  let section = "";

  function read(map: YAMLMap, steps: readonly string[]): readonly Value[] {
    return map.items.flatMap(({ key, value }, index) => {
      if (!isScalar(key)) throw new Error("expected keys that are plain text");
      const path = [...steps, String(key.value)];
      // The comment above the first key of a map belongs to the map.
      const above = (index === 0 ? map.commentBefore : undefined) ?? key.commentBefore ?? "";
      const lines = above.split("\n").map((line) => line.trim());
      section = lines.findLast((line) => line.startsWith("# "))?.slice(2) ?? section;
      const description = lines.slice(lines.lastIndexOf("") + 1).filter((line) => !line.startsWith("# "));
      if (isMap(value) && hasComments(value)) return read(value, path);
      if (description.length === 0) throw new Error(`values.yaml: ${path.join(".")} has no comment above it`);
      const plain: unknown =
        isMap(value) || !isScalar(value) ? (value as { toJSON(): unknown }).toJSON() : value.value;
      return [{ section, path: path.join("."), default: plain, description: description.join(" ") }];
    });
  }
  return read(contents, []);
}

function hasComments(map: YAMLMap): boolean {
  return (
    Boolean(map.commentBefore) ||
    map.items.some(
      ({ key, value }) => (isScalar(key) && key.commentBefore) || (isMap(value) && hasComments(value)),
    )
  );
}

/** Returns the text of helm/VALUES.md: a table of values for each section of values.yaml. */
export function valuesPage(values: readonly Value[]): string {
  const headings = [...new Set(values.map(({ section }) => section))];
  const tables = headings.map((heading) => {
    const rows = values.filter(({ section }) => section === heading);
    const lines = rows.map(
      (row) => `| \`${row.path}\` | ${shown(row.default)} | ${row.description.replaceAll("|", "\\|")} |`,
    );
    return `## ${heading}\n\n| Value | Default | Meaning |\n|---|---|---|\n${lines.join("\n")}\n`;
  });
  return `# Values of the chart\n\nMade from \`values.yaml\` by \`npx tsx test/chart/generate.ts\`.\n\n${tables.join("\n")}`;
}

function shown(value: unknown): string {
  return value === "" || value === null ? "" : `\`${JSON.stringify(value)}\``;
}

type Json = Record<string, unknown>;

/**
 * Returns the schema of the values with that of `service.yaml` in it, without descriptions, which
 * change more often.
 */
export function withSettings(schema: Json, settings: Json): Json {
  const { definitions: shared, $schema: _, title: __, ...rest } = withoutProse(settings) as Json;
  return {
    ...schema,
    definitions: { ...(schema["definitions"] as Json), ...(shared as Json), settings: rest },
  };
}

function withoutProse(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (typeof schema !== "object" || schema === null) return schema;
  // A setting may be named `description`; its schema is not a text.
  const kept = Object.entries(schema).filter(
    ([key, value]) => key !== "description" || typeof value !== "string",
  );
  return Object.fromEntries(kept.map(([key, value]: [string, unknown]) => [key, withoutProse(value)]));
}

export function readJson(path: string): Json {
  return JSON.parse(readFileSync(fileOf(path), "utf8")) as Json;
}

/** Writes the generated files: helm/VALUES.md, and the settings in helm/values.schema.json. */
export function generate(): void {
  const values = describedValues(readFileSync(fileOf("helm/values.yaml"), "utf8"));
  writeFileSync(fileOf("helm/VALUES.md"), valuesPage(values));
  const schema = withSettings(
    readJson("helm/values.schema.json"),
    readJson("config/schema/service.schema.json"),
  );
  writeFileSync(fileOf("helm/values.schema.json"), `${JSON.stringify(schema, null, 2)}\n`);
}
