import { expect } from "chai";
import { createNamesOf } from "../../src/app/statement-names.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";

const guests = (length: number): ReturnType<typeof definitionsOf> =>
  definitionsOf(definition({ name: "guests", fields: [keyField(), field("email", "String", { length })] }));

describe("createNamesOf", () => {
  it("gives a statement the same name after a reload, and another one for other types", () => {
    const namesOf = createNamesOf(false);
    const first = namesOf(guests(40), "lists")("SELECT 1");

    expect(namesOf(guests(40), "lists")("SELECT 1")).to.equal(first);
    expect(namesOf(guests(80), "lists")("SELECT 1")).not.to.equal(first);
    expect(namesOf(guests(40), "lists")("SELECT 1")).to.equal(first);
  });

  it("counts statements on over reloads of the same types, and anew for other types", () => {
    const namesOf = createNamesOf(false);
    const named = (length: number, from: number): number =>
      Array.from({ length: 600 }, (_, index) =>
        namesOf(guests(length), "lists")(`SELECT ${from + index}`),
      ).filter((name) => name !== undefined).length;

    expect([named(40, 0), named(40, 1000), named(80, 2000), named(40, 3000)]).to.deep.equal([
      600, 400, 600, 0,
    ]);
  });

  it("leaves names to reads and deletes, however many sets of fields a user sends", () => {
    const names = createNamesOf(false)(guests(40), "records");
    const ofBodies = [
      "INSERT INTO guests AS t",
      "WITH t AS (INSERT INTO guests AS t",
      "UPDATE guests AS t SET",
      "WITH t AS (UPDATE guests AS t SET",
      "SELECT EXISTS (SELECT 1 FROM guests AS t WHERE",
    ];
    for (let index = 0; index < 1_000; index += 1) ofBodies.forEach((text) => names(`${text} ${index}`));

    expect(ofBodies.map((text) => names(text))).to.deep.equal(ofBodies.map(() => undefined));
    expect(names("SELECT id FROM guests")).to.be.a("string");
    expect(names("DELETE FROM guests")).to.be.a("string");
  });

  it("leaves names to single records and to the relay, however many lists a user asks for", () => {
    const namesOf = createNamesOf(false);
    const inLists = namesOf(guests(40), "lists");
    for (let index = 0; index < 1_000; index += 1) inLists(`SELECT ${index}`);

    expect(inLists("SELECT FROM guests")).to.equal(undefined);
    expect(namesOf(guests(40), "records")("SELECT FROM guests")).to.be.a("string");
    expect(namesOf(guests(40), "relay")("SELECT FROM guests")).to.be.a("string");
  });
});
