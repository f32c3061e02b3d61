import { RE2JS } from "re2js";

/** A pattern of the rules `regex` and `not_regex`. */
interface Pattern {
  /**
   * Number of instructions of the compiled pattern. A match takes at most this many steps per
   * character.
   */
  readonly size: number;
  /**
   * Returns whether a part of the text matches. The time is linear in the text, for every pattern.
   */
  readonly matches: (text: string) => boolean;
}

/**
 * Limit of the size. A bounded repeat counts as often as it repeats: `.{1,255}` has 500
 * instructions.
 */
const maxSize = 1000;

const engineFlags: Readonly<Record<string, number>> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
  u: 0,
};

/**
 * Compiles `/^[a-z]+$/i`, in JavaScript's syntax with the flag u, for an engine without
 * backtracking. JavaScript's own engine takes quadratic time for `/a+$/`, and exponential time for
 * `/(a|a)+$/`.
 *
 * @throws SyntaxError that describes the fault. Look-around and back references are refused.
 */
export function compilePattern(written: string): Pattern {
  const parts = /^\/([^]*)\/([a-zA-Z]*)$/.exec(written);
  if (parts === null) throw new SyntaxError("must be written between slashes, as in /^[a-z]+$/i");
  const [, source = "", flags = ""] = parts;
  // The flags g and y would make the result depend on earlier tests.
  if (/[^imsu]/.test(flags)) throw new SyntaxError(`has a flag other than i, m, s and u: ${flags}`);
  // The pattern must be valid in both syntaxes: with the flag u, JavaScript refuses parts that the
  // engine reads differently, such as \A.
  void new RegExp(source, flags.includes("u") ? flags : `${flags}u`);
  const engine = compileLinear(source, flags);
  const size = engine.programSize();
  if (size > maxSize)
    throw new SyntaxError(
      `comes to ${size} instructions, ${maxSize} at most: use smaller repeats, and the rules min and max for the length`,
    );
  return { size, matches: (text) => engine.test(text) };
}

const unsupported = "look-around, back references and repeats beyond 1000 cannot be matched in linear time";

function compileLinear(source: string, flags: string): RE2JS {
  // The translation would turn \k<name> into the letters k<name>.
  if (source.replaceAll("\\\\", "").includes("\\k"))
    throw new SyntaxError(`\\k is a back reference; ${unsupported}`);
  const bits = flags.split("").reduce((sum, flag) => sum | (engineFlags[flag] ?? 0), 0);
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source), bits);
  } catch (error) {
    const reason =
      error instanceof Error ? error.message.replace("error parsing regexp: ", "") : String(error);
    throw new SyntaxError(`${reason}; ${unsupported}`, { cause: error });
  }
}
