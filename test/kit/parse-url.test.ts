import { expect } from "chai";
import { parseUrl } from "../../src/kit/parse-url.ts";

describe("parseUrl", () => {
  it("gives the URL of a text, and undefined for a text that is none", () => {
    expect(parseUrl("https://example.com/a")?.host).to.equal("example.com");
    expect(parseUrl("example.com")).to.equal(undefined);
  });

  it("accepts letters beyond ASCII after many calls, unlike URL.canParse of Node.js 20.20", () => {
    for (let i = 0; i < 20_000; i++) parseUrl(`https://example.com/${i}`);

    expect(parseUrl("https://müller.example/")?.host).to.equal("xn--mller-kva.example");
  });
});
