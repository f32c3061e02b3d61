import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { cpuMsOf } from "../support/cpu-time.ts";
import { listShop } from "../support/list-shop.ts";
import { createRandom } from "../support/random.ts";
import { listReader } from "./list-reader.ts";

const { shape } = listShop();
const { read, errorsIn } = listReader(shape);

const pieces =
  "filter [ ] [id] [status] [or] [and] [not] [0] [1] [eq] [in] [between] [null] [has] [meta.a] [lines.sku] [customer.name] [__proto__] [constructor] sort fields include cursor count page per_page search = & , %5C %00 %ff % %25 + - . 1 9999999999 true open 2026-01-01 1e9 \\ 😀 id amount toString".split(
    " ",
  );

/** Names that are similar to `customer.customer.….100`, and different from all of them. */
const typed = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${"cutsomer.".repeat(6)}${index}`);

describe("a hostile query string", () => {
  it("is read, or refused with 422 and messages of a bounded length: 5,000 by chance", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = createRandom(seed);
    for (let round = 0; round < 5_000; round += 1) {
      const query = Array.from(
        { length: Math.floor(random() * 40) },
        () => pieces[Math.floor(random() * pieces.length)],
      ).join("");
      try {
        read(query);
      } catch (error) {
        expect(error, `seed ${seed}: ${query}`).to.be.instanceOf(AppError);
        expect((error as AppError).status, `seed ${seed}: ${query}`).to.equal(422);
        expect(JSON.stringify((error as AppError).errors).length).to.be.below(100_000);
      }
    }
  });

  for (const [what, query] of [
    ["a million parameters", "a=1&".repeat(1_000_000)],
    ["a million ampersands", "&".repeat(1_000_000)],
    ["a million brackets", `filter${"[".repeat(500_000)}${"]".repeat(500_000)}=1`],
    ["a million groups", `filter${"[not]".repeat(200_000)}[id]=1`],
    ["a million commas", `filter[id]=${",".repeat(1_000_000)}`],
    ["a million backslashes", `filter[reference]=${"\\".repeat(1_000_000)}`],
    ["a million dots", `filter[meta${".a".repeat(500_000)}]=1`],
    ["a million dots in fields", `fields=meta${".a".repeat(500_000)}`],
    ["a million digits", `filter[amount]=${"9".repeat(1_000_000)}`],
    ["a million fields", `fields=${"nosuchfield,".repeat(80_000)}`],
    ["a million sorts", `sort=${"-id,".repeat(250_000)}`],
    ["a million broken codes", `filter[reference]=${"%f".repeat(500_000)}`],
  ] as const) {
    it(`with ${what} is refused with 422, or takes time linear in its length`, async () => {
      let errors = {};
      const cpuMs = await cpuMsOf(() => (errors = errorsIn(query)));

      expect(JSON.stringify(errors).length).to.be.below(2_200_000);
      expect(cpuMs).to.be.below(2_000);
    });
  }

  it("with a million dots in fields is refused where code makes the records, too", () => {
    const ofCode = listReader({ ...shape, places: undefined });

    expect(ofCode.errorsIn(`fields=meta${".a".repeat(500_000)}`)["fields"]).to.have.length(1);
    expect(ofCode.errorsIn("fields=meta.a,anything")).to.deep.equal({});
  });

  it("with names similar to those of a wide table is refused soon, with a suggestion", async () => {
    const [place] = shape.places?.values() ?? [];
    const [path] = shape.filterable.paths.values();
    if (place === undefined || path === undefined) throw new Error("The shop shows nothing.");
    const names = Array.from({ length: 200 }, (_, index) => `${"customer.".repeat(6)}${100 + index}`);
    const wide = {
      ...shape,
      places: new Map(names.map((name) => [name, place])),
      filterable: { paths: new Map(names.map((name) => [name, { ...path, path: name }])), faults: new Map() },
    };
    const filters = typed(50).map((name) => `filter[${name}x]=1`);
    const query = [`fields=${typed(100).join(",")},cutsomer.${names[0]?.slice(9)}`, ...filters].join("&");

    const refuse = (): unknown =>
      expect(() => readListParameters(query, wide, { maxPerPage: 100 })).to.throw(AppError);
    // Measured before: 1,300.
    expect(await cpuMsOf(refuse, 3)).to.be.below(500);
    expect(() => readListParameters(`fields=c${names[0]}`, wide, { maxPerPage: 100 }))
      .to.throw(AppError)
      .with.nested.property("errors.fields[0]", `There is no field c${names[0]}; did you mean ${names[0]}?`);
  });
});
