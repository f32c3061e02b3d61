import { expect } from "chai";
import { createEventPresenter } from "../../src/events/event-presenter.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

const sales = definition({
  name: "sales",
  fields: [field("state", "String")],
  code: {
    transform({ id, state }) {
      if (state === "old") throw new Error("no price");
      return { id, state };
    },
  },
});

describe("createEventPresenter, of old rows", () => {
  it("leaves out those that cannot be presented, and logs their number once", async () => {
    const warned: unknown[] = [];
    const present = createEventPresenter({
      definitions: definitionsOf(sales),
      sql: () => expect.fail("there are no relations"),
      delegateOf: () => expect.fail("there are no relations"),
      log: { warn: (fields: unknown) => void warned.push(fields) },
    });
    const events = [undefined, "old", "older", "old"].map((state, id) => ({
      snapshot: { id, state: "new" },
      previous: state === undefined ? null : { id, state },
    }));

    const presented = await present("sales", events);

    expect(presented).to.deep.equal({
      kind: "each",
      answers: [
        { kind: "presented", data: { id: 0, state: "new" } },
        { kind: "presented", data: { id: 1, state: "new" } },
        { kind: "presented", data: { id: 2, state: "new" }, previous: { id: 2, state: "older" } },
        { kind: "presented", data: { id: 3, state: "new" } },
      ],
    });
    const reason = "transform of the resource sales failed: no price";
    expect(warned).to.deep.equal([{ event: "relay.no_previous", resource: "sales", reason, events: 2 }]);
  });
});
