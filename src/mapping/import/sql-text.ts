/** Removes the parentheses around a whole SQL expression, as often as there are any. */
export function withoutParentheses(text: string): string {
  let inner = text.trim();
  while (inner.startsWith("(") && closingOf(inner) === inner.length - 1) inner = inner.slice(1, -1).trim();
  return inner;
}

/** Returns the index of the parenthesis that closes the first one; -1 without one. */
function closingOf(text: string): number {
  let depth = 0;
  for (const { index, character } of codeOf(text)) {
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (depth === 0) return index;
  }
  return -1;
}

/** Lists the characters of SQL that are in no text and in no quoted name, with their places. */
function* codeOf(text: string): Generator<{ readonly index: number; readonly character: string }> {
  let quote = "";
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if (character === "'" || character === '"') quote = character;
    else yield { index, character };
  }
}

/**
 * Returns a text of the same length with underscores in place of what is in parentheses,
 * texts and quoted names.
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

/** Splits an SQL expression where the separator stands outside of parentheses and texts. */
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

/** Removes the casts and parentheses around a value: `('a'::text)::varchar` is `'a'`. */
export function withoutCasts(text: string): string {
  let inner = withoutParentheses(text);
  for (;;) {
    const [, value] = cast.exec(inner) ?? [];
    // A cast within a longer expression belongs to a part of it.
    if (value === undefined || !isWhole(value)) return inner;
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

/** Returns the text of an SQL literal in single quotes; undefined for anything else. */
export function textOfLiteral(sql: string): string | undefined {
  const [, text] = /^'((?:[^']|'')*)'$/s.exec(sql) ?? [];
  return text?.replaceAll("''", "'");
}

/** Returns the text of an SQL literal, quoted or a number, without its casts. */
export function literalOf(sql: string): string | undefined {
  const bare = withoutCasts(sql);
  return textOfLiteral(bare) ?? (/^-?\d+(?:\.\d+)?$/.test(bare) ? bare : undefined);
}

/** Returns the name that an SQL identifier means; undefined when the text is none. */
export function nameOfIdentifier(sql: string): string | undefined {
  if (/^[\p{L}_][\p{L}\p{N}_$]*$/u.test(sql)) return sql;
  const [, quoted] = /^"((?:[^"]|"")+)"$/.exec(sql) ?? [];
  return quoted?.replaceAll('""', '"');
}
