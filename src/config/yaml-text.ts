import { stringify } from "yaml";

/** Writes a value as YAML, with lines of at most 100 characters where possible. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 100 });
}
