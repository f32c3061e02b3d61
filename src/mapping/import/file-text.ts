import { blockLines, commentLine } from "../../config/yaml-lines.ts";
import type { ImportedFile } from "./imported-table.ts";

/**
 * Writes a new mapping file.
 *
 * @param schema Path of the JSON Schema from the file, for editors; undefined without one.
 */
export function fileText(
  { content, comments }: Pick<ImportedFile, "content" | "comments">,
  schema: string | undefined,
): string {
  const lines = Object.entries(content).flatMap(([key, value]) => [
    ...(comments[key] ?? []).map(commentLine),
    ...(key === "fields"
      ? fieldLines(value as Readonly<Record<string, unknown>>, comments)
      : blockLines(key, value)),
  ]);
  return [
    ...(schema === undefined ? [] : [`# yaml-language-server: $schema=${schema}`]),
    ...(comments[""] ?? []).map(commentLine),
    ...lines,
    "",
  ].join("\n");
}

function fieldLines(
  fields: Readonly<Record<string, unknown>>,
  comments: ImportedFile["comments"],
): readonly string[] {
  return [
    "fields:",
    ...Object.entries(fields).flatMap(([name, field]) => [
      ...(comments[`fields.${name}`] ?? []).map((line) => `  ${commentLine(line)}`),
      ...blockLines(name, field).map((line) => `  ${line}`),
    ]),
  ];
}
