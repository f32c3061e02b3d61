/**
 * Replaces `${NAME}`, and `${NAME:-default}` for a variable that is unset or empty. `$${` is an
 * escaped `${`. Replaces in each item of a list. Returns undefined for a text with variables that
 * comes out empty.
 */
export function fillIn(
  value: unknown,
  env: NodeJS.ProcessEnv,
): { readonly value: unknown; readonly faults: readonly string[] } {
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => fillIn(item, env));
    return { value: items.map((item) => item.value), faults: items.flatMap((item) => item.faults) };
  }
  if (typeof value !== "string") return { value, faults: [] };
  const faults: string[] = [];
  const filled = value.replace(/\$\$\{|\$\{([^}]*)\}|\$\{/g, (match, inside: string | undefined) => {
    if (match === "$${") return "${";
    const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside ?? "") ?? [];
    if (name === undefined) {
      faults.push("expected ${NAME} or ${NAME:-default}; $${ stands for ${ itself");
      return "";
    }
    const text = env[name];
    if (fallback !== undefined) return text || fallback;
    if (text === undefined)
      faults.push(`the variable ${name} is not set; expected it, or \${${name}:-default}`);
    return text ?? "";
  });
  return { value: filled === "" && value !== "" ? undefined : filled, faults };
}
