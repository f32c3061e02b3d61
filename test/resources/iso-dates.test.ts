import { expect } from "chai";
import type { Definition, Field, FieldType } from "../../src/mapping/definition.ts";
import { field } from "../support/definitions.ts";
import { definitions, openServedDatabase, withVariant, type ServedDatabase } from "./serving.ts";
import { ask, startApi, type Api } from "./serving-api.ts";

const columns = `ALTER TABLE orders
  ADD COLUMN due date UNIQUE, ADD COLUMN told timestamptz(3), ADD COLUMN plain timestamptz(3), ADD COLUMN seen timestamptz(3) UNIQUE,
  ADD COLUMN daily time, ADD COLUMN days date[], ADD COLUMN abroad date`;

const optional = (name: string, type: FieldType, more: Partial<Field> = {}): Field =>
  field(name, type, { isOptional: true, ...more });

describe("dates of a body", () => {
  let served: ServedDatabase;
  let api: Api;

  const rules = {
    reference: "required",
    amount: "required",
    due: "date_format:d.m.Y|unique:orders,due",
    told: "date_format:Y-d-m,U",
    plain: "date",
    seen: "date",
    daily: "date_format:g:i A",
    "days.*": "date_format:d/m/Y",
    abroad: "date_format:Y-m-d H:i P",
    "asked.first": "date_format:d.m.Y|exists:orders,due",
    "asked.second": "date_format:m.d.Y|exists:orders,due",
  };

  before(async () => {
    served = await openServedDatabase();
    await served.sql(columns);
    const orders = definitions.get("orders") as Definition;
    const fields = [
      ...orders.fields,
      optional("due", "Date", { isUnique: true }),
      optional("told", "DateTime"),
      optional("plain", "DateTime"),
      optional("seen", "Instant", { isUnique: true }),
      optional("daily", "Time"),
      field("days", "Date", { isList: true }),
      optional("abroad", "Date"),
    ];
    api = await startApi(served, withVariant("orders", { fields, createRules: rules }));
  });

  after(async () => {
    await api.server.close();
    await served.close();
  });

  let made = 0;
  const create = async (dates: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const reference = `D-${++made}`;
    const { status, json } = await ask(api, "ada", "POST /orders", { reference, amount: 1, ...dates });
    if (status !== 201) return json;
    const names = Object.keys(dates).map((name) => `${name}::text AS ${name}`);
    const [stored] = await served.sql(`SELECT ${names.join(", ")} FROM orders WHERE reference = $1`, [
      reference,
    ]);
    return stored;
  };

  for (const [given, stored] of [
    [{ due: "03.04.2026" }, { due: "2026-04-03" }],
    [{ told: "2026-04-03" }, { told: "2026-03-04 00:00:00+00" }],
    [{ told: 1774708200 }, { told: "2026-03-28 14:30:00+00" }],
    [{ daily: "2:30 PM" }, { daily: "14:30:00" }],
    [{ days: ["03/04/2026", "28/03/2026"] }, { days: "{2026-04-03,2026-03-28}" }],
  ] as const)
    it(`stores ${JSON.stringify(given)} as the format of the rule reads it`, async () => {
      expect(await create(given)).to.deep.equal(stored);
    });

  it("drops digits that a managed column cannot hold, of a unique time as of any other", async () => {
    const [told, seen] = ["2026-03-28T14:30:00.123999Z", "2026-03-28T14:30:00.123999Z"];

    expect(await create({ seen })).to.deep.equal({ seen: "2026-03-28 14:30:00.123+00" });
    expect(await create({ plain: told })).to.deep.equal({ plain: "2026-03-28 14:30:00.123+00" });
  });

  it("refuses a day with a zone, which is another day elsewhere", async () => {
    expect(await create({ abroad: "2026-03-28 00:30 +02:00" })).to.have.nested.property("errors.abroad");
  });

  it("looks up a date as the format of the rule reads it", async () => {
    await create({ due: "05.06.2026" });

    expect(await create({ due: "05.06.2026" })).to.have.nested.property("errors.due");
    expect(await create({ due: "06.05.2026" })).to.deep.equal({ due: "2026-05-06" });
  });

  it("looks up one text for each of the formats that read it", async () => {
    await create({ due: "07.08.2026" });

    const refused = await create({ asked: { first: "07.08.2026", second: "07.08.2026" } });
    expect(refused).to.have.property("errors").that.has.all.keys("asked.second");
  });
});
