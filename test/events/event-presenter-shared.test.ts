import { expect } from "chai";
import { createEventPresenter } from "../../src/events/event-presenter.ts";
import type { Delegate } from "../../src/db/models-client.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

interface Shop {
  name: string;
  readonly opened_at: Date;
  readonly photo: Uint8Array;
  readonly tags: string[];
}

const shops = definition({
  name: "shops",
  fields: [
    field("name", "String"),
    field("opened_at", "DateTime"),
    field("photo", "Bytes"),
    field("tags", "String", { isList: true }),
  ],
});

const sales = definition({
  name: "sales",
  fields: [
    field("shop_id", "Int", {
      references: { resource: "shops", field: "id", as: "shop", onDelete: "cascade" },
    }),
  ],
  // An `include` that only the Prisma client supports.
  baseQuery: { include: { shop: { omit: { id: true } } } },
  code: {
    transform({ shop: given }) {
      const shop = given as Shop;
      const shown = [shop.name, shop.opened_at.toISOString(), [...shop.photo], [...shop.tags]];
      shop.name = "changed";
      shop.opened_at.setTime(0);
      shop.photo[0] = 0;
      shop.tags.push("changed");
      return { shown };
    },
  },
});

describe("createEventPresenter, of events that refer to one record", () => {
  it("shows each the unchanged record, although code changes it", async () => {
    const shop = {
      id: 1,
      name: "North",
      opened_at: new Date("2026-01-01T08:00:00.000Z"),
      photo: new Uint8Array([7]),
      tags: ["a"],
    };
    const delegate = { findMany: () => Promise.resolve([shop]) };
    const present = createEventPresenter({
      definitions: definitionsOf(shops, sales),
      sql: () => expect.fail("Prisma reads what is related"),
      delegateOf: async () => delegate as unknown as Delegate,
    });
    const snapshot = { id: 1, shop_id: 1 };

    const presented = await present("sales", [{ snapshot, previous: snapshot }, { snapshot }]);

    const data = { shown: ["North", "2026-01-01T08:00:00.000Z", [7], ["a"]] };
    expect(presented).to.deep.equal({
      kind: "each",
      answers: [
        { kind: "presented", data, previous: data },
        { kind: "presented", data },
      ],
    });
  });
});
