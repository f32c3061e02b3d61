import { expect } from "chai";
import { namesOf } from "../../src/app/statement-names.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";

const guests = (length: number): ReturnType<typeof definitionsOf> =>
  definitionsOf(definition({ name: "guests", fields: [keyField(), field("email", "String", { length })] }));

const named = (length: number): string | undefined => namesOf(false, guests(length))("SELECT 1");

describe("namesOf", () => {
  it("gives a statement the same name after a reload, and another one for other types", () => {
    expect([named(40), named(40) === named(80)]).to.deep.equal([named(40), false]);
  });
});
