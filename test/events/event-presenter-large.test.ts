import { expect } from "chai";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { ResultTooLargeError } from "../../src/db/result-limit.ts";
import { createEventPresenter } from "../../src/events/event-presenter.ts";
import type { Row } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

const references = { resource: "shops", field: "id", as: "shop", onDelete: "cascade" } as const;
const sales = definition({
  name: "sales",
  fields: [field("shop_id", "Int", { references })],
  baseQuery: { include: { shop: true } },
  code: { transform: (row: Row) => row },
});
const definitions = definitionsOf(sales, definition({ name: "shops", fields: [field("name", "String")] }));

describe("createEventPresenter, of references to large records", () => {
  it("fails when they are larger than a connection may hold: fewer may fit", async () => {
    const present = createEventPresenter({
      definitions,
      sql: () => Promise.reject(new ResultTooLargeError(2_000_000, 3)),
      delegateOf: () => expect.fail("the statement is no work for Prisma"),
    });

    const fault = await present("sales", [{ snapshot: { id: 1, shop_id: 1 } }]).catch(databaseFaultOf);

    expect(fault).to.deep.equal({ kind: "too_large", rows: 3 });
  });

  it("reports that a statement took too long, perhaps for one of the events", async () => {
    const present = createEventPresenter({
      definitions,
      sql: () => Promise.reject(Object.assign(new Error("statement timeout"), { code: "57014" })),
      delegateOf: () => expect.fail("the statement is no work for Prisma"),
    });

    const answer = await present("sales", [{ snapshot: { id: 1, shop_id: 1 } }]);

    expect(answer).to.include({ kind: "none", isPassing: true, isTooSlow: true });
  });
});
