import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkDefinitions } from "../../src/mapping/load.ts";
import { createTransform } from "../../src/querying/transform.ts";

const configDir = fileURLToPath(new URL("../../config", import.meta.url));

describe("the sample mapping files", () => {
  it("have no faults, and are managed", async () => {
    const { definitions, faults } = await checkDefinitions(configDir);

    expect(faults).to.deep.equal([]);
    expect([...(definitions?.values() ?? [])].map(({ name, isManaged }) => [name, isManaged])).to.deep.equal([
      ["customers", true],
      ["orders", true],
      ["tasks", true],
    ]);
  });

  it("name the JSON Schema for editors in their first line", () => {
    // The example is in a folder beside theirs, so that the line also works in a copy.
    const files = ["resources", "example-team"].flatMap((folder) =>
      readdirSync(`${configDir}/${folder}`)
        .filter((name) => name.endsWith(".yaml"))
        .map((name) => `${folder}/${name}`),
    );
    for (const file of files) {
      const [first] = readFileSync(`${configDir}/${file}`, "utf8").split("\n");
      expect(first, file).to.equal("# yaml-language-server: $schema=../schema/resource.schema.json");
    }
    readFileSync(`${configDir}/schema/resource.schema.json`);
  });

  it("show in orders.yaml every key that a mapping file may have, save those of other tables and `module`", () => {
    const schema = JSON.parse(readFileSync(`${configDir}/schema/resource.schema.json`, "utf8")) as {
      readonly properties: object;
    };
    const text = readFileSync(`${configDir}/resources/orders.yaml`, "utf8");
    const missing = Object.keys(schema.properties).filter((key) => !new RegExp(`^${key}:`, "m").test(text));

    expect(missing).to.deep.equal(["table", "view", "unique", "indexes", "module"]);
  });

  it("show an order with its customer", async () => {
    const { definitions } = await checkDefinitions(configDir);
    const orders = definitions?.get("orders");
    if (definitions === undefined || orders === undefined) throw new Error("there are no orders");

    const row = {
      id: 7,
      reference: "A-1",
      status: "open",
      amount: "12.50",
      notes: null,
      customer_id: 3,
      user_id: 1,
      customer: { id: 3, name: "Ann", email: "ann@example.com" },
    };
    expect(createTransform(orders, definitions)(row)).to.deep.include({
      id: 7,
      kind: "order",
      customer: { id: 3, name: "Ann" },
    });
  });

  it("show a task by the code of its module", async () => {
    const { definitions } = await checkDefinitions(configDir);
    const tasks = definitions?.get("tasks");
    if (definitions === undefined || tasks === undefined) throw new Error("there are no tasks");

    const shown = createTransform(tasks, definitions);

    const due = new Date("2026-03-28T14:30:00.123Z");
    expect(
      shown({ id: "a", title: "b", tags: [], is_done: false, due_at: due, created_at: due }),
    ).to.deep.equal({
      id: "a",
      title: "b",
      tags: [],
      state: "scheduled",
      due_at: "2026-03-28T14:30:00.123+00:00",
      created_at: "2026-03-28T14:30:00.123+00:00",
    });
  });
});
