import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const folders = readdirSync(join(root, "src"));

const longestLine = 100;
const mostWords = 20;

const banned = /\b(anew|at home|be it|besides|in hand|told|mends?|mended|nobody|whoever)\b/i;
/** A value of the setting `isAdmin`, and of a label. */
const values = /^"(nobody|in_hand)"$/;
const missingDocuments = /\b(contract|specification),? (section )?\d|\bcontract of the\b|reference\/\w+\.md/i;

const commentPattern = /^[ \t]*\/\*\*[^]*?\*\/|^(?:[ \t]*\/\/(?! oxlint).*\n)+/gm;

interface Comment {
  /** `src/app/run.ts:12` */
  readonly place: string;
  readonly isDocstring: boolean;
  readonly lines: readonly string[];
  /** Its text without markers. A blank line, a tag and an item of a list start a paragraph. */
  readonly paragraphs: readonly string[];
}

describe("comments", () => {
  const comments = filesOf("src").flatMap(commentsOf);
  const all = [...comments, ...["test", "bench"].flatMap(filesOf).flatMap(commentsOf)];

  function offenders(isOffender: (comment: Comment) => boolean, among = comments): readonly string[] {
    return among.filter(isOffender).map(({ place, paragraphs }) => `${place}: ${paragraphs.join(" ")}`);
  }

  it("are found in every folder", () => {
    const found = new Set(comments.map(({ place }) => place.split("/")[1]));
    expect(folders.filter((folder) => !found.has(folder))).to.deep.equal([]);
  });

  it(`have lines of at most ${longestLine} characters`, () => {
    const found = offenders(({ lines }) => lines.some((line) => line.length > longestLine), all);
    expect(found).to.deep.equal([]);
  });

  it("use plain words", () => {
    const found = offenders(({ paragraphs }) => paragraphs.some((text) => banned.test(text)), all);
    expect(found).to.deep.equal([]);
  });

  it("start with the subject or the verb, and never with Of", () => {
    const found = offenders(
      ({ isDocstring, paragraphs: [first = ""] }) => isDocstring && /^Of\b/.test(first),
    );
    expect(found).to.deep.equal([]);
  });

  it("cite no document that the repository does not have", () => {
    const found = offenders(({ paragraphs }) => paragraphs.some((text) => missingDocuments.test(text)));
    expect(found).to.deep.equal([]);
  });

  it(`have at most ${mostWords} words in a sentence, or in a part of one that a colon or semicolon ends`, () => {
    const sentences = comments.flatMap(({ place, paragraphs }) =>
      paragraphs.flatMap((text) => text.split(/(?<=[.;:?])\s+/)).map((sentence) => ({ place, sentence })),
    );
    const long = sentences.filter(({ sentence }) => sentence.split(/\s+/).length > mostWords);
    expect(long.map(({ place, sentence }) => `${place}: ${sentence}`)).to.deep.equal([]);
  });
});

describe("log lines and messages", () => {
  it("use plain words", () => {
    const found = filesOf("src").flatMap((file) =>
      messagesOf(file)
        .filter((text) => banned.test(text) && !values.test(text))
        .map((text) => `${file}: ${text}`),
    );
    expect(found).to.deep.equal([]);
  });
});

/** Returns the TypeScript files of a top folder, by their path from the root. */
function filesOf(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((file) => join(folder, file))
    .filter((file) => /\.tsx?$/.test(file) && !file.includes("generated"));
}

/** Returns the string literals and templates of a file. */
function messagesOf(file: string): readonly string[] {
  const code = readFileSync(join(root, file), "utf8").replaceAll(commentPattern, "");
  return [...code.matchAll(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g)].map(([text]) => text);
}

function commentsOf(file: string): readonly Comment[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(commentPattern)].map(({ 0: comment, index }) => {
    const lines = comment.trimEnd().split("\n");
    const texts = lines.map((line) =>
      line
        .replace(/^\s*(?:\/\*\*|\*\/|\*|\/\/) ?/, "")
        .replace(/ ?\*\/$/, "")
        .trim(),
    );
    return {
      place: `${file}:${text.slice(0, index).split("\n").length}`,
      isDocstring: comment.trimStart().startsWith("/**"),
      lines,
      paragraphs: texts
        .join("\n")
        .split(/\n{2,}|\n(?=@|- )/)
        .map((paragraph) => paragraph.replaceAll("\n", " ").trim()),
    };
  });
}
