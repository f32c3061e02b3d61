/** Removes all parentheses around a whole SQL expression. */
export function withoutParentheses(text: string): string {
  let inner = text.trim();
  while (inner.startsWith("(") && closingOf(inner) === inner.length - 1) inner = inner.slice(1, -1).trim();
  return inner;
}

/** Returns the index of the parenthesis that closes the first one, or -1. */
function closingOf(text: string): number {
  let depth = 0;
  for (const { index, character } of codeOf(text)) {
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (depth === 0) return index;
  }
  return -1;
}

/** Yields the characters of SQL outside of texts and quoted names, with their positions. */
function* codeOf(text: string): Generator<{ readonly index: number; readonly character: string }> {
  // Matches quoted names, texts with backslashes, other texts, or one character.
  for (const { 0: token, index } of text.matchAll(/"[^"]*"|\bE'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|[^]/g))
    if (token.length === 1) yield { index, character: token };
}

/**
 * Replaces the contents of parentheses, texts and quoted names by underscores. The text keeps its
 * length.
 */
export function maskedText(text: string): string {
  const masked = Array.from({ length: text.length }, () => "_");
  let depth = 0;
  for (const { index, character } of codeOf(text)) {
    if (character === "(" || character === "[") depth += 1;
    else if (character === ")" || character === "]") depth -= 1;
    else if (depth === 0) masked[index] = character;
  }
  return masked.join("");
}

/** Splits an SQL expression at separators outside of parentheses and texts. */
export function splitAt(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const { index, character } of codeOf(text)) {
    if (character === "(" || character === "[") depth += 1;
    if (character === ")" || character === "]") depth -= 1;
    if (depth === 0 && index >= from && text.startsWith(separator, index)) {
      parts.push(text.slice(from, index).trim());
      from = index + separator.length;
    }
  }
  return [...parts, text.slice(from).trim()];
}

const cast = /^(.+)::(?:"[^"]+"|[\w .]|\.)+(?:\(\d+(?:,\s*-?\d+)?\))?(?: with(?:out)? time zone)?(?:\[\])*$/s;

/**
 * Removes the casts and parentheses around a value: `('a'::text)::varchar` is `'a'`.
 *
 * @param isRemoved Returns whether a cast to that type is removed; default: each one is.
 */
export function withoutCasts(text: string, isRemoved: (type: string) => boolean = () => true): string {
  let inner = withoutParentheses(text);
  for (;;) {
    const [, value] = cast.exec(inner) ?? [];
    // A cast within a longer expression belongs to a part of it.
    if (value === undefined || !isWhole(value) || !isRemoved(inner.slice(value.length + 2))) return inner;
    inner = withoutParentheses(value);
  }
}

function isWhole(text: string): boolean {
  const inner = text.trim();
  if (/^'(?:[^']|'')*'$/.test(inner) || /^[\w.]+$/.test(inner) || /^"[^"]+"$/.test(inner)) return true;
  if (/^[\w.]*\(.*\)$/s.test(inner))
    return closingOf(inner.slice(inner.indexOf("("))) === inner.length - 1 - inner.indexOf("(");
  return /^ARRAY\[.*\]$/s.test(inner) || cast.test(inner);
}

/** Returns the value of an SQL literal in single quotes; undefined for anything else. */
export function textOfLiteral(sql: string): string | undefined {
  const [, text] = /^'((?:[^']|'')*)'$/s.exec(sql) ?? [];
  return text?.replaceAll("''", "'");
}

/** Returns the value of an SQL literal, quoted or a number, without its casts. */
export function literalOf(sql: string): string | undefined {
  const bare = withoutCasts(sql);
  return textOfLiteral(bare) ?? (/^-?\d+(?:\.\d+)?$/.test(bare) ? bare : undefined);
}

/** Returns the name of an SQL identifier; undefined for any other text. */
export function nameOfIdentifier(sql: string): string | undefined {
  if (/^[\p{L}_][\p{L}\p{N}_$]*$/u.test(sql)) return sql;
  const [, quoted] = /^"((?:[^"]|"")+)"$/.exec(sql) ?? [];
  return quoted?.replaceAll('""', '"');
}
