/** Letters that Unicode does not decompose into a Latin letter and a mark. */
const letters = new Map(
  [
    "ä=ae ö=oe ü=ue ß=ss æ=ae œ=oe ø=oe ł=l đ=d ð=d þ=th ı=i",
    "а=a б=b в=v г=g д=d е=e ё=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts",
    "ч=ch ш=sh щ=shch ъ= ы=y ь= э=e ю=yu я=ya і=i ї=yi є=ye ґ=g",
    "α=a β=b γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o",
  ].flatMap(pairsOf),
);

function pairsOf(line: string): readonly [string, string][] {
  return line.split(" ").map((pair) => pair.split("=") as [string, string]);
}

/** Transliterates a name to ASCII, as far as possible: `Größe` is `Groesse`. */
function toAscii(name: string): string {
  const all = Array.from(name.normalize("NFC"));
  return all
    .map((letter, index) => {
      const small = letter.toLowerCase();
      const known = letters.get(small) ?? letters.get(small.normalize("NFD").replaceAll(/\p{M}/gu, ""));
      if (known === undefined || /[a-z]/.test(small)) return letter;
      if (isAmongCapitals(all[index - 1], all[index + 1])) return known.toUpperCase();
      return small === letter ? known : capitalized(known);
    })
    .join("")
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "");
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns whether a neighbour of a letter is a capital, and none is a small letter. */
function isAmongCapitals(before = "", after = ""): boolean {
  return /\p{Lu}/u.test(before + after) && !/\p{Ll}/u.test(after) && !/\p{Ll}/u.test(before);
}

/** Returns the words of a name: `OrderLines` and `ORDER_LINES` are order and lines. */
export function wordsOf(name: string): readonly string[] {
  return toAscii(name)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll(/([A-Z]+)([A-Z][a-z]+)/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
}

/** Limit in characters of the name of a resource. */
export const longestResource = 48;
const longestName = 63;

/** Returns the name of a resource for a table. A valid name of a table stays. */
export function resourceNameOf(table: string, fallback: string): string {
  if (/^[a-z][a-z0-9_-]*$/.test(table) && table.length <= longestResource) return table;
  const words = wordsOf(table);
  const name = words.length === 0 ? fallback : words.join("_");
  return (/^[a-z]/.test(name) ? name : `t_${name}`).slice(0, longestResource).replace(/_+$/, "");
}

/** Returns the name of a field for a column. A valid name stays, with its capitals. */
export function fieldNameOf(column: string, fallback: string): string {
  if (/^[A-Za-z][A-Za-z0-9_]*$/.test(column) && column.length <= longestName) return column;
  const ascii = toAscii(column)
    .replaceAll(/[^A-Za-z0-9_]+/g, "_")
    .replaceAll(/^_+|_+$/g, "");
  const name = ascii === "" ? fallback : ascii;
  return (/^[A-Za-z]/.test(name) ? name : `c_${name}`).slice(0, longestName);
}

/** Words whose plural and singular are the same, or that end in s without being plurals. */
const unchanged = new Set(
  (
    "series species news status bus gas lens canvas alias atlas bias bonus campus census corpus focus genus virus " +
    "address access process business class mass pass progress success analysis basis crisis axis chaos plus " +
    "mathematics physics economics logistics statistics analytics sms gps dns os"
  ).split(" "),
);

/**
 * Irregular plurals. It is a map, because a table may be named `constructor`, which every object
 * has.
 */
const irregular = new Map(
  [
    "people=person children=child men=man women=woman mice=mouse geese=goose feet=foot teeth=tooth",
    "data=datum media=medium criteria=criterion indices=index matrices=matrix vertices=vertex",
    "analyses=analysis bases=base movies=movie cookies=cookie statuses=status aliases=alias buses=bus",
    "viruses=virus canvases=canvas bonuses=bonus campuses=campus lives=life wives=wife knives=knife",
    "leaves=leaf shelves=shelf quizzes=quiz",
  ].flatMap(pairsOf),
);

/** Returns the singular of an English word; any other word as it is. */
function singularOf(word: string): string {
  const known = irregular.get(word);
  if (known !== undefined) return known;
  if (unchanged.has(word) || word.length < 4) return word;
  if (/[^aeiou]ies$/.test(word)) return `${word.slice(0, -3)}y`;
  if (/(?:ss|sh|ch|x|zz)es$/.test(word)) return word.slice(0, -2);
  if (/(?:ss|us|is)$/.test(word)) return word;
  return word.endsWith("s") ? word.slice(0, -1) : word;
}

/** Returns the name of the model of a resource: `order_lines` is `OrderLine`. */
export function modelNameOf(resource: string): string {
  const words = wordsOf(resource);
  const last = words.length - 1;
  const name = words
    .map((word, index) => (index === last ? singularOf(word) : word))
    .map(capitalized)
    .join("");
  return name.slice(0, longestName);
}

/** Joins two names in the style of the first one: `SOLL_KONTO`, `createdByUser`. */
export function joinedName(name: string, other: string): string {
  if (/^[A-Z0-9_]+$/.test(name)) return `${name}_${other.toUpperCase()}`;
  if (!/[a-z0-9][A-Z]|^[A-Z]/.test(name) || name.includes("_")) return `${name}_${other}`;
  return name + other.split("_").map(capitalized).join("");
}

/** Returns the singular of a resource's name, for relations: `order_lines` is `order_line`. */
export function singularNameOf(resource: string): string {
  const words = wordsOf(resource);
  return [...words.slice(0, -1), singularOf(words.at(-1) ?? "")].join("_");
}

/** Returns the first free candidate, else the first candidate with a number. */
export function freeName(
  candidates: readonly string[],
  isTaken: (name: string) => boolean,
  longest = longestName,
): string {
  const free = candidates.find((name) => name !== "" && name.length <= longest && !isTaken(name));
  if (free !== undefined) return free;
  const [first = ""] = candidates;
  for (let number = 2; ; number += 1) {
    const name = `${first.slice(0, longest - 1 - String(number).length)}_${number}`;
    if (!isTaken(name)) return name;
  }
}
