import { stringify } from "yaml";

/** Writes a value as YAML, with lines of at most 100 characters where it can be so. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 100 });
}
