const sigma = 0x3a3;
const smallSigma = 0x3c3;
const dottedI = 0x130;

/**
 * Returns small letters, each letter by itself as PostgreSQL does it: a sigma does not depend on
 * its place. The text keeps its length, and so does each letter.
 */
export function lowered(text: string): string {
  // The two that do not go by themselves: a sigma at the end of a word, and the one that grows.
  if (!/[\u03a3\u0130]/.test(text)) return text.toLowerCase();
  const bytes = Buffer.from(text, "utf16le");
  const units = unitsOf(bytes);
  for (let at = 0; at < units.length; at += 1)
    if (units[at] === sigma || units[at] === dottedI) units[at] = smallSigma;
  const small = Buffer.from(bytes.toString("utf16le").toLowerCase(), "utf16le");
  const smallUnits = unitsOf(small);
  for (let at = 0; at < smallUnits.length; at += 1)
    if (text.charCodeAt(at) === dottedI) smallUnits[at] = dottedI;
  return small.toString("utf16le");
}

function unitsOf({ buffer, byteOffset, length }: Buffer): Uint16Array {
  return new Uint16Array(buffer, byteOffset, length / 2);
}

/**
 * Returns a search for a part of texts, in time linear in the text (Knuth, Morris and Pratt).
 * `includes` takes the product of both lengths at worst: seconds for a part of 16,000 characters.
 */
export function createSearch(part: string): (text: string) => boolean {
  const { length } = part;
  if (length === 0) return () => true;
  /** How much of the part may still fit when the next character does not; -1 for nothing. */
  const fallback = new Int32Array(length);
  fallback[0] = -1;
  for (let at = 1, fitting = 0; at < length; at += 1) {
    const code = part.charCodeAt(at);
    fallback[at] = code === part.charCodeAt(fitting) ? (fallback[fitting] ?? -1) : fitting;
    while (fitting >= 0 && code !== part.charCodeAt(fitting)) fitting = fallback[fitting] ?? -1;
    fitting += 1;
  }
  return (text) => {
    let fitting = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      while (fitting >= 0 && code !== part.charCodeAt(fitting)) fitting = fallback[fitting] ?? -1;
      fitting += 1;
      if (fitting === length) return true;
    }
    return false;
  };
}
