/** Returns a text without the blanks around it; empty for any other value. */
export function trimmedText(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
