import { onText, onValueWith, type MakeCheck } from "./check.ts";
import { isAscii, textOf } from "./values.ts";

/**
 * Creates a rule on letters. A number counts as its digits, as in Laravel. The argument `ascii`
 * limits the letters to a-z.
 */
function lettersOf(unicode: RegExp, ascii: RegExp, takesNumbers: boolean): MakeCheck {
  return ([mode]) => {
    const pattern = mode === "ascii" ? ascii : unicode;
    return ({ value }) => {
      const text = typeof value === "number" && takesNumbers ? String(value) : value;
      return typeof text === "string" && pattern.test(text) ? undefined : {};
    };
  };
}

function affix(matches: (text: string, part: string) => boolean, wanted: boolean): MakeCheck {
  return onValueWith(
    (parts) => ({ values: parts.join(", ") }),
    (value, parts) => {
      const text = typeof value === "boolean" ? undefined : textOf(value);
      return text !== undefined && parts.some((part) => matches(text, part)) === wanted;
    },
  );
}

const startsWith = (text: string, part: string): boolean => text.startsWith(part);
const endsWith = (text: string, part: string): boolean => text.endsWith(part);

/** The checks of rules on letters and affixes. */
export const textChecks = {
  alpha: lettersOf(/^[\p{L}\p{M}]+$/u, /^[a-zA-Z]+$/, false),
  alpha_dash: lettersOf(/^[\p{L}\p{M}\p{N}_-]+$/u, /^[a-zA-Z0-9_-]+$/, true),
  alpha_num: lettersOf(/^[\p{L}\p{M}\p{N}]+$/u, /^[a-zA-Z0-9]+$/, true),
  ascii: onText((text) => isAscii(text)),
  lowercase: onText((text) => text.toLowerCase() === text),
  uppercase: onText((text) => text.toUpperCase() === text),
  starts_with: affix(startsWith, true),
  ends_with: affix(endsWith, true),
  doesnt_start_with: affix(startsWith, false),
  doesnt_end_with: affix(endsWith, false),
} satisfies Record<string, MakeCheck>;
