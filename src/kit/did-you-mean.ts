/**
 * Limit in characters. A longer word is not a typing error, and the time of `distanceBetween` grows
 * with the square of the length.
 */
const longestWord = 64;

/** Limit of the edits: a word with more is another word. */
const mostEdits = 5;

/**
 * Returns the known word nearest to a mistyped one. Undefined when no known word is near enough.
 */
function nearest(word: string, known: Iterable<string>): string | undefined {
  const typed = word.toLowerCase();
  if (typed.length > longestWord) return undefined;
  let best: string | undefined;
  let bestDistance = Math.min(mostEdits, Math.max(1, Math.floor(typed.length / 3))) + 1;
  for (const candidate of known) {
    const distance = distanceBetween(typed, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/**
 * Returns `; did you mean "x"?`, or an empty text when no known word is near enough.
 *
 * @param mark Quotation mark around the known word.
 */
export function questionOf(word: string, known: Iterable<string>, mark = '"'): string {
  const meant = nearest(word, known);
  return meant === undefined ? "" : `; did you mean ${mark}${meant}${mark}?`;
}

/**
 * Returns the end of a message about an unknown word: the nearest known word, else up to 30 known
 * words. Empty when there are more.
 *
 * @param end End of a message without a question.
 */
export function hint(word: string, known: Iterable<string>, mark = '"', end = ""): string {
  const words = [...known];
  const question = questionOf(word, words, mark);
  if (question !== "") return question;
  return words.length > 0 && words.length <= 30 ? `; expected one of ${words.join(", ")}${end}` : end;
}

/** Limit of the names to compare with. More would take too long, for 50 names in one request. */
const mostCompared = 200;

/** Returns the end of a sentence about an unknown name in a request. */
export function suggestionFor(name: string, known: readonly string[]): string {
  return hint(name, known.slice(0, mostCompared), "", ".");
}

/**
 * Counts the edits (insert, remove, replace, swap of neighbours) that turn `a` into `b`. Returns
 * Infinity for `limit` or more, since one request may have 50 words and 200 names to compare.
 */
function distanceBetween(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return Infinity;
  let beforeLast: number[] = [];
  let last = Array.from({ length: Math.min(b.length, limit) + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    // The others are `limit` edits away.
    for (let j = Math.max(1, i - limit); j <= Math.min(b.length, i + limit); j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const edits = Math.min(
        (last[j] ?? Infinity) + 1,
        (row[j - 1] ?? Infinity) + 1,
        (last[j - 1] ?? Infinity) + (isSame ? 0 : 1),
        isSwap ? (beforeLast[j - 2] ?? Infinity) + 1 : Infinity,
      );
      row[j] = edits;
      least = Math.min(least, edits);
    }
    // Later rows have no fewer edits.
    if (least >= limit) return Infinity;
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? Infinity;
}

/** Returns the message about an unknown field of a request. */
export function unknownField(name: string, known: readonly string[]): string {
  return `There is no field ${shortened(name)}${suggestionFor(name, known)}`;
}

/** Returns a name for a message, shortened because requests may have any names. */
export function shortened(name: string): string {
  return name.length <= 100 ? name : `${name.slice(0, 100)}…`;
}
