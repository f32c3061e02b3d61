import { expect } from "chai";
import { cursorEnvelope, envelope, pageOf, searchFault, smallerPage } from "../../src/http/page.ts";

describe("pageOf", () => {
  for (const [query, page, perPage] of [
    [{}, 1, 15],
    [{ page: "3", per_page: "20" }, 3, 20],
    [{ page: "0", per_page: "0" }, 1, 15],
    [{ page: "-1", per_page: "-5" }, 1, 15],
    [{ page: "1.5", per_page: "1e2" }, 1, 15],
    [{ page: "abc", per_page: "" }, 1, 15],
    [{ page: "２" }, 1, 15],
    [{ per_page: "101" }, 1, 100],
    [{ per_page: "9".repeat(400) }, 1, 100],
  ] as const) {
    it(`reads ${JSON.stringify(query).slice(0, 60)} as page ${page} of ${perPage} each`, () => {
      const read = pageOf(new Map(Object.entries(query)), 100);

      expect(read).to.deep.equal({ page, perPage, skip: (page - 1) * perPage });
    });
  }

  it("lowers absurd page numbers to 2147483647, and keeps skip below 2^31", () => {
    for (const per_page of ["1", "15", "100"]) {
      for (const page of ["2147483647", "99999999999999999999", "9".repeat(400)]) {
        const read = pageOf(new Map(Object.entries({ page, per_page })), 100);

        expect(read.page).to.equal(2 ** 31 - 1);
        expect(read.skip).to.be.within(2 ** 31 - 2, 2 ** 31 - 1);
      }
    }
  });
});

describe("smallerPage", () => {
  for (const [skip, most, perPage, page] of [
    [0, 7, 7, 1],
    [0, 1, 1, 1],
    [100, 30, 25, 5],
    [30, 7, 6, 6],
    [13, 5, 1, 14],
  ] as const) {
    it(`begins after ${skip} records with ${perPage} of at most ${most}`, () => {
      expect(smallerPage({ page: 2, perPage: 100, skip }, most)).to.deep.equal({ page, perPage, skip });
    });
  }
});

describe("searchFault", () => {
  it("takes 100 characters, a surrogate pair counted once", () => {
    expect(searchFault("😀".repeat(100))).to.equal(undefined);
  });

  it("refuses 101 characters", () => {
    expect(searchFault("a".repeat(101))).to.equal(
      "The search field must not be greater than 100 characters.",
    );
  });
});

const linked = (link: string | null): number | null =>
  link === null ? null : Number(new URL(link).searchParams.get("page"));

describe("envelope", () => {
  const url = new URL("https://api.example.com/svc-api/resources/orders?per_page=10&search=a%26b&page=2");
  const wrap = (page: number, total: number) => envelope({ data: ["x"], total, page, perPage: 10, url });

  it("has the seven fields of the specification", () => {
    expect(wrap(2, 25)).to.deep.equal({
      data: ["x"],
      current_page: 2,
      last_page: 3,
      per_page: 10,
      total: 25,
      next_page_url: "https://api.example.com/svc-api/resources/orders?per_page=10&search=a%26b&page=3",
      prev_page_url: "https://api.example.com/svc-api/resources/orders?per_page=10&search=a%26b&page=1",
    });
  });

  for (const [page, total, last, next, previous] of [
    [1, 0, 1, null, null],
    [1, 10, 1, null, null],
    [1, 11, 2, 2, null],
    [2, 11, 2, null, 1],
    [9, 25, 3, null, 3],
    [2, 0, 1, null, 1],
  ] as const) {
    it(`of ${total} records on page ${page} links to next ${next} and previous ${previous}`, () => {
      const answer = wrap(page, total);

      expect([answer.last_page, linked(answer.next_page_url), linked(answer.prev_page_url)]).to.deep.equal([
        last,
        next,
        previous,
      ]);
    });
  }

  it("links to pages of the size in effect when that is smaller than the size asked for", () => {
    const answer = envelope({ data: ["x"], total: 25, page: 3, perPage: 5, url });

    expect(answer.next_page_url).to.match(/per_page=5&.*page=4$/);
    expect(answer.prev_page_url).to.match(/per_page=5&.*page=2$/);
  });

  it("links to pages of that size where the last one of several sizes was asked for", () => {
    const asked = new URL("https://a.example.com/orders?per_page=4&per_page=10");
    const answer = envelope({ data: ["x"], total: 25, page: 3, perPage: 5, url: asked });

    expect(answer.next_page_url).to.equal("https://a.example.com/orders?per_page=5&page=4");
  });

  it("says that a total is an estimate", () => {
    const answer = envelope({ data: [], total: 12_000, isEstimate: true, page: 1, perPage: 10, url });

    expect(answer).to.include({ total: 12_000, total_is_estimate: true, last_page: 1200 });
  });

  it("without a total has no last page, and links to the next one where there is one", () => {
    const uncounted = { data: [], total: undefined, page: 3, perPage: 10, url };
    const answer = envelope({ ...uncounted, hasNext: true });

    expect(answer).to.include({ total: null, last_page: null }).and.not.to.have.property("total_is_estimate");
    expect([linked(answer.next_page_url), linked(answer.prev_page_url)]).to.deep.equal([4, 2]);
    expect(envelope(uncounted).next_page_url).to.equal(null);
  });

  it("leaves the other parameters as they were written, without the old ones", () => {
    const search = "?filter[a,b]=%66,2&p%61ge=1&page=2&&?page=4&x";
    const asked = new URL(`https://api.example.com/orders${search}`);

    expect(envelope({ data: [], total: 99, page: 2, perPage: 10, url: asked }).next_page_url).to.equal(
      "https://api.example.com/orders?filter[a,b]=%66,2&page=3&?page=4&x&per_page=10",
    );
  });

  it("leaves the given URL as it is", () => {
    wrap(2, 25);

    expect(url.searchParams.get("page")).to.equal("2");
  });
});

describe("cursorEnvelope", () => {
  const url = new URL("https://api.example.com/orders?per_page=10&cursor=&sort=id");

  it("has both cursors and the links to their pages, with the other parameters", () => {
    const page = { data: ["x"], next: "abc", previous: undefined, perPage: 10, url };

    expect(cursorEnvelope(page)).to.deep.equal({
      data: ["x"],
      per_page: 10,
      next_cursor: "abc",
      prev_cursor: null,
      next_page_url: "https://api.example.com/orders?per_page=10&cursor=abc&sort=id",
      prev_page_url: null,
    });
  });
});
