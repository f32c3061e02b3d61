import { itemOf, isContainer } from "./body-paths.ts";
import { onText, onValue, onValueWith, type MakeCheck } from "./check.ts";
import { isInteger, isNumeric, toDecimal } from "./values.ts";

const looseBooleans: ReadonlySet<unknown> = new Set([true, false, 0, 1, "0", "1"]);

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns whether a value is an array or object. With arguments, it may have no other keys. */
function isArray(value: unknown, keys: readonly string[]): boolean {
  if (!isContainer(value)) return false;
  return keys.length === 0 || Object.keys(value).every((key) => keys.includes(key));
}

function hasDecimals(value: unknown, [least = "", most = least]: readonly string[]): boolean {
  if (!isNumeric(value)) return false;
  // JavaScript writes 0.0000001 as 1e-7.
  const text = typeof value === "number" ? toDecimal(value).toFixed() : value;
  const parts = /^[+-]?\d*(?:\.(\d*))?$/.exec(text);
  const { length } = parts?.[1] ?? "";
  return parts !== null && length >= Number(least) && length <= Number(most);
}

/** The checks of rules on types. */
export const typeChecks = {
  string: onValue((value) => typeof value === "string"),
  integer: onValue((value, [mode]) => isInteger(value) && (mode !== "strict" || typeof value === "number")),
  numeric: onValue((value, [mode]) => isNumeric(value) && (mode !== "strict" || typeof value === "number")),
  decimal: onValueWith((args) => ({ decimal: args.join("-") }), hasDecimals),
  boolean: onValue((value, [mode]) =>
    mode === "strict" ? typeof value === "boolean" : looseBooleans.has(value),
  ),
  array: onValue(isArray),
  list: onValue((value) => Array.isArray(value)),
  json: onText(isJsonText),
  required_array_keys: onValueWith(
    (keys) => ({ values: keys.join(", ") }),
    (value, keys) => isContainer(value) && keys.every((key) => itemOf(value, key) !== undefined),
  ),
} satisfies Record<string, MakeCheck>;
