import { expect } from "chai";
import type { LookupAddress } from "node:dns";
import { createSharedLookup, type Lookup } from "../../src/deliveries/shared-lookup.ts";

const found = [{ address: "192.0.2.1", family: 4 }];

describe("createSharedLookup", () => {
  let asked: string[];
  let answerAll: (error: Error | null, addresses: LookupAddress[]) => void;
  let lookup: Lookup;
  let told: unknown[];

  beforeEach(() => {
    asked = [];
    told = [];
    const answers: Parameters<Lookup>[2][] = [];
    answerAll = (error, addresses) => {
      for (const answer of answers.splice(0)) answer(error, addresses);
    };
    lookup = createSharedLookup((hostname, { family }, answer) => {
      asked.push(`${hostname} ${String(family)}`);
      answers.push(answer);
    });
  });

  const ask = (hostname: string, family = 0): void =>
    lookup(hostname, { all: true, family }, (error, addresses) => told.push(error ?? addresses));

  it("asks once for a name that is asked for at the same time, and tells everybody", () => {
    for (let count = 0; count < 3; count++) ask("a.example");
    expect(told).to.deep.equal([]);

    answerAll(null, found);

    expect(asked).to.deep.equal(["a.example 0"]);
    expect(told).to.deep.equal([found, found, found]);
  });

  it("tells everybody of a failure", () => {
    const error = new Error("ENOTFOUND");
    ask("a.example");
    ask("a.example");

    answerAll(error, []);

    expect(told).to.deep.equal([error, error]);
  });

  it("asks for each name and family", () => {
    ask("a.example");
    ask("b.example");
    ask("a.example", 6);

    expect(asked).to.deep.equal(["a.example 0", "b.example 0", "a.example 6"]);
  });

  it("remembers no answer: the next one may be another", () => {
    ask("a.example");
    answerAll(null, found);
    ask("a.example");
    answerAll(null, []);

    expect(asked).to.have.length(2);
    expect(told).to.deep.equal([found, []]);
  });

  it("asks the system by default", (done) => {
    createSharedLookup()("localhost", { all: true, family: 4 }, (error, addresses) => {
      expect([error, addresses]).to.deep.equal([null, [{ address: "127.0.0.1", family: 4 }]]);
      done();
    });
  });
});
