import { expect } from "chai";
import { AppError, validationError, type FieldErrors } from "../../src/kit/errors.ts";
import { maxOperations, readBatch, refuseUnsupported } from "../../src/resources/batch-body.ts";
import { faultOfOperation } from "../../src/resources/batch-fault.ts";
import { definition, field, keyField } from "../support/definitions.ts";

const notes = definition({ name: "notes", model: "Note", fields: [keyField(), field("text", "String")] });

const read = (...operations: readonly unknown[]): ReturnType<typeof readBatch> => readBatch({ operations });

function errorsOf(act: () => unknown): FieldErrors | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    if (error instanceof AppError && error.code === "validation.failed") return error.errors;
    throw error;
  }
}

describe("readBatch", () => {
  it("shortens long unknown keys, and fills no placeholder in them", () => {
    const long = ":attribute".repeat(90_000);
    const errors = [
      errorsOf(() => readBatch({ operations: [{ method: "delete", id: 1 }], [long]: 1 })),
      errorsOf(() => read({ method: "delete", id: 1, [long]: 1 })),
    ];

    for (const one of errors) {
      expect(Object.keys(one ?? {})[0]).to.have.length.below(120);
      expect(Object.values(one ?? {})[0]?.[0]).to.include(`There is no field ${":attribute".repeat(10)}…`);
    }
  });

  it("accepts the three methods, ids as texts, and entity tags", () => {
    expect(
      read(
        { method: "create", data: { text: "a" } },
        { method: "update", id: 7, data: {}, if_match: '"x", W/"y"' },
        { method: "delete", id: "8", if_match: "*" },
        { method: "delete", id: -1 },
      ),
    ).to.deep.equal([
      { method: "create", data: { text: "a" } },
      { method: "update", id: "7", data: {}, ifMatch: ['"x"', 'W/"y"'] },
      { method: "delete", id: "8", ifMatch: "*" },
      { method: "delete", id: "-1", ifMatch: undefined },
    ]);
  });

  it(`accepts at most ${maxOperations} operations`, () => {
    const many = Array.from({ length: maxOperations }, () => ({ method: "create", data: {} }));

    expect(read(...many)).to.have.length(maxOperations);
    expect(errorsOf(() => read(...many, many[0]))).to.deep.equal({
      operations: ["The operations field must not have more than 1000 items."],
    });
  });

  for (const [what, body, errors] of [
    ["no operations", {}, { operations: ["The operations field is required."] }],
    ["an empty list", { operations: [] }, { operations: ["The operations field is required."] }],
    ["an object", { operations: { 0: {} } }, { operations: ["The operations field must be a list."] }],
    [
      "a field that it does not know",
      { operations: [], operation: [] },
      {
        operations: ["The operations field is required."],
        operation: ["There is no field operation; did you mean operations?"],
      },
    ],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(errorsOf(() => readBatch(body))).to.deep.equal(errors);
    });
  }

  for (const [operation, errors] of [
    [7, { "operations.0": ["The operations.0 field must be an object."] }],
    [
      { method: "upsert" },
      {
        "operations.0.method": [
          "The selected operations.0.method is invalid; expected create, update or delete.",
        ],
      },
    ],
    [
      { method: "toString" },
      {
        "operations.0.method": [
          "The selected operations.0.method is invalid; expected create, update or delete.",
        ],
      },
    ],
    [{ method: "create" }, { "operations.0.data": ["The operations.0.data field is required."] }],
    [
      { method: "create", data: [] },
      { "operations.0.data": ["The operations.0.data field must be an object."] },
    ],
    [
      { method: "create", data: {}, id: 5 },
      { "operations.0.id": ["There is no field id; expected one of method, data."] },
    ],
    [
      { method: "delete", data: {} },
      {
        "operations.0.data": ["There is no field data; expected one of method, id, if_match."],
        "operations.0.id": ["The operations.0.id field is required."],
      },
    ],
    [
      { method: "delete", id: 1.5 },
      { "operations.0.id": ["The operations.0.id field must be a string or an integer."] },
    ],
    [
      { method: "delete", id: null },
      { "operations.0.id": ["The operations.0.id field must be a string or an integer."] },
    ],
    [
      { method: "update", id: 1, data: {}, if_match: "x" },
      {
        "operations.0.if_match": [
          "The operations.0.if_match field must be * or entity tags in double quotes, as ETag gives them.",
        ],
      },
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(operation)}`, () => {
      expect(errorsOf(() => read(operation))).to.deep.equal(errors);
    });
  }

  it("reports the faults of at most 100 operations", () => {
    const errors = errorsOf(() => read(...Array.from({ length: 500 }, () => ({ method: "x" }))));

    expect(Object.keys(errors ?? {})).to.have.length(100);
  });
});

describe("refuseUnsupported", () => {
  it("refuses what the resource does not support", () => {
    const operations = read({ method: "create", data: {} }, { method: "delete", id: 1 });

    expect(errorsOf(() => refuseUnsupported(operations, notes))).to.equal(undefined);
    expect(errorsOf(() => refuseUnsupported(operations, { ...notes, supportsDelete: false }))).to.deep.equal({
      "operations.1.method": ["The resource notes does not support delete."],
    });
  });
});

const places = (thrown: unknown, method: "create" | "update" | "delete" = "update"): unknown => {
  const fault = faultOfOperation({ method }, 3, thrown);
  return fault instanceof AppError ? [fault.status, fault.message, fault.errors] : fault;
};

describe("faultOfOperation", () => {
  it("names the fields of its data", () => {
    expect(places(validationError({ "items.0.price": ["Too low."], name: ["Missing."] }))).to.deep.equal([
      422,
      "Too low. (and 1 more error)",
      { "operations.3.data.items.0.price": ["Too low."], "operations.3.data.name": ["Missing."] },
    ]);
  });

  for (const [code, status, place] of [
    ["record.not_found", 404, "id"],
    ["record.forbidden", 403, "id"],
    ["record.referenced", 409, "id"],
    ["record.changed", 412, "if_match"],
    ["record.too_large", 413, "data"],
    ["validation.failed", 422, "data"],
  ] as const) {
    it(`names the ${place} for ${code}`, () => {
      expect(places(new AppError(code, "No."))).to.deep.equal([
        status,
        "No.",
        { [`operations.3.${place}`]: ["No."] },
      ]);
    });
  }

  it("leaves a fault of the service unchanged: a 500 names no place", () => {
    const thrown = new AppError("server.error", "Server Error");

    expect(faultOfOperation({ method: "update" }, 3, thrown)).to.equal(thrown);
  });

  it("names the data of a create, which has no id", () => {
    expect(places(new AppError("record.forbidden", "No."), "create")).to.deep.equal([
      403,
      "No.",
      { "operations.3.data": ["No."] },
    ]);
  });

  it("names the id of a delete, which has no data", () => {
    expect(places(new AppError("validation.failed", "No."), "delete")).to.deep.equal([
      422,
      "No.",
      { "operations.3.id": ["No."] },
    ]);
  });

  it("leaves a fault of the service unchanged", () => {
    const bug = new Error("a bug");

    expect(places(bug)).to.equal(bug);
    expect(places(new AppError("server.overloaded", "Server Error"))).to.deep.equal([
      503,
      "Server Error",
      undefined,
    ]);
  });
});
