import { expect } from "chai";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { refuseWrite, refusingAtCommit } from "../../src/resources/refusals.ts";
import { definition, field } from "../support/definitions.ts";

const rooms = definition({
  name: "rooms",
  model: "Room",
  isManaged: false,
  fields: [
    field("name", "String"),
    field("span", "String", { native: "int4range" }),
    field("floorNumber", "Int", { column: "floor_number" }),
  ],
});

function messageOf(error: object, definitionOf = rooms, operation?: "create" | "update"): unknown {
  try {
    refuseWrite(definitionOf, error, operation);
  } catch (refusal) {
    return (refusal as { readonly errors?: unknown }).errors;
  }
}

function malformed(kind: string): Error {
  return Object.assign(new Error(`malformed ${kind} literal: "nope"`), { code: "22P02" });
}

describe("refuseWrite", () => {
  it("requires a value that the table requires", () => {
    expect(messageOf({ code: "23502", column: "name" })).to.deep.equal({
      name: ["The name field is required."],
    });
  });

  it("names a field as the rules do", () => {
    expect(messageOf({ code: "23505", detail: "Key (floor_number)=(3) already exists." })).to.deep.equal({
      floorNumber: ["The floor number has already been taken."],
    });
    expect(messageOf({ code: "23505", detail: "Key (lower(Name))=(a) already exists." })).to.deep.equal({
      "lower(Name)": ["The lower(Name) has already been taken."],
    });
  });

  it("names the fields of an indexed expression", () => {
    const detail = "Key (floor_number, lower(COALESCE(name, span::text, 'x'::text)))=(3, a) already exists.";

    expect(Object.keys(messageOf({ code: "23505", detail }) as object)).to.deep.equal([
      "floorNumber",
      "name",
      "span",
    ]);
    expect(messageOf({ code: "23505", detail: "Key (lower(name::text))=(a) already exists." })).to.deep.equal(
      {
        name: ["The name has already been taken."],
      },
    );
    expect(
      messageOf({ code: "23505", detail: "Key ((span ->> 'name'::text))=(a) already exists." }),
    ).to.have.keys("span");
  });

  it("names the fields that an EXCLUDE constraint compares, otherwise the constraint", () => {
    const excluded = { code: "23P01", constraint: "one_booking" };
    const detail =
      "Key (floor_number, int4range(lower(span), upper(span)))=(3, [1,4)) conflicts with existing key (floor_number, int4range(lower(span), upper(span)))=(3, [2,5)).";
    const end = "conflicts with another record, by the constraint one_booking of the table.";

    expect(messageOf({ ...excluded, detail })).to.deep.equal({
      floorNumber: [`The floor number ${end}`],
      span: [`The span ${end}`],
    });
    for (const unnamed of [
      excluded,
      { ...excluded, detail: "Key (other)=(3) conflicts with existing key (other)=(3)." },
    ])
      expect(() => refuseWrite(rooms, unnamed)).to.throw(
        "it breaks the constraint one_booking of the table.",
      );
  });

  it("does not treat the end of the server's transaction ids as a fault of the values", () => {
    const error = { code: "54000", routine: "GetNewTransactionId" };

    expect(() => refuseWrite(rooms, error))
      .to.throw()
      .that.equals(error);
    expect(databaseFaultOf(error)).to.deep.equal({ kind: "unavailable" });
  });

  it("does not require a value that no rule allows in a request", () => {
    expect(messageOf({ code: "23502", column: "id" })).to.deep.equal({
      id: [
        "The id field has no value: the table gives it none, and no rule of createRules lets a request set it.",
      ],
    });
  });

  it("requires it in an update, whose rules allow it, and not in a create, whose rules drop it", () => {
    const apart = { ...rooms, createRules: { span: "string" }, updateRules: { name: "string" } };
    const error = { code: "23502", column: "name" };

    expect(messageOf(error, apart)).to.deep.equal({
      name: [
        "The name field has no value: the table gives it none, and no rule of createRules lets a request set it.",
      ],
    });
    expect(messageOf(error, apart, "update")).to.deep.equal({ name: ["The name field is required."] });
  });

  it("names the only field of a range, and none for a multirange", () => {
    expect(messageOf(malformed("range"))).to.deep.equal({
      span: ["The span field must be a valid int4range."],
    });
    expect(messageOf(malformed("multirange"))).to.deep.equal({});
  });

  const texts: readonly [native: string, code: string, message: string][] = [
    ["int4range", "22000", "range lower bound must be less than or equal to range upper bound"],
    ["bit(8)", "22026", "bit string length 2 does not match type bit(8)"],
    ["bit varying(8)", "22001", "bit string too long for type bit varying(8)"],
    ["varbit", "22001", "bit string too long for type bit varying(9)"],
    ["ltree", "42601", "ltree syntax error at character 4"],
  ];
  for (const [native, code, message] of texts) {
    it(`names the field of: ${message}`, () => {
      const place = definition({
        name: "places",
        model: "Place",
        fields: [field("at", "String", { native })],
      });

      const errors = messageOf(Object.assign(new Error(message), { code }), place);

      expect(errors).to.deep.equal({ at: [`The at field must be a valid ${native}.`] });
    });
  }
});

describe("refusingAtCommit", () => {
  const fault = new Error("deferred");
  const told: unknown[] = [];
  const failureAt = async (isAtCommit: boolean): Promise<unknown> => {
    const inTransaction = refusingAtCommit(
      async (work) => {
        await work(undefined as never);
        throw fault;
      },
      (error) => told.push(error),
    );
    const work = async (): Promise<void> => (isAtCommit ? undefined : Promise.reject(fault));
    return inTransaction(work).catch((error: unknown) => error);
  };

  it("refuses what fails at the commit, and not what fails before it", async () => {
    expect(await failureAt(false)).to.equal(fault);
    expect(told).to.deep.equal([]);
    expect(await failureAt(true)).to.equal(fault);
    expect(told).to.deep.equal([fault]);
  });
});
