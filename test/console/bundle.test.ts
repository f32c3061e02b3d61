import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const folder = new URL("../../dist/console/", import.meta.url);
const most = 300 * 1024;

function read(name: string): string {
  return readFileSync(new URL(name, folder), "utf8");
}

/** Returns the names of the files that a file imports. */
function importsOf(text: string): readonly string[] {
  return [...text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)].map(
    ([, name = ""]) => `assets/${name}`,
  );
}

describe("the built console", () => {
  const page = read("index.html");

  it("is at most 300 KB gzipped before its first page, the overview included", () => {
    const named = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name = ""]) => name);
    const first = readdirSync(new URL("assets/", folder))
      .filter((name) => /^(overview|uplot|chart)/i.test(name))
      .map((name) => `assets/${name}`);
    const files = new Set([...named, ...first]);
    // A loop over a set also visits items that are added meanwhile.
    for (const name of files)
      if (name.endsWith(".js")) for (const other of importsOf(read(name))) files.add(other);

    const bytes = [...files].reduce((sum, name) => sum + gzipSync(read(name)).byteLength, 0);
    expect([...files].filter((name) => name.endsWith(".js")).length).to.be.at.least(2);
    expect(bytes).to.be.at.most(most);
  });

  it("loads the other sections when they are opened", () => {
    const main = [...page.matchAll(/src="\.\/(assets\/[^"]+\.js)"/g)].map(([, name = ""]) => name);
    const early = main.flatMap((name) => importsOf(read(name)));

    expect(early.filter((name) => /resources|webhooks|deliveries|events|admin/.test(name))).to.deep.equal([]);
  });

  it("has nothing inline, and no external address", () => {
    expect(page).not.to.match(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
    expect(
      [...page.matchAll(/(?:src|href)="([^"]+)"/g)]
        .map(([, url]) => url)
        .filter((url) => !/^(\.\/assets\/|\/console\/$)/.test(url ?? "")),
    ).to.deep.equal([]);
  });

  it("never puts a text into the page as markup", () => {
    const sources = readdirSync(new URL("../../src/console/", import.meta.url), {
      recursive: true,
      encoding: "utf8",
    });
    const offenders = sources
      .filter((name) => /\.tsx?$/.test(name))
      .filter((name) =>
        /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/.test(
          readFileSync(new URL(`../../src/console/${name}`, import.meta.url), "utf8"),
        ),
      );

    expect(offenders).to.deep.equal([]);
  });
});
