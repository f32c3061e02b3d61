import { expect } from "chai";
import { deliveredBodies } from "../support/delivered.ts";
import { subscribe } from "../support/notes.ts";
import { psql } from "../support/psql.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";

const files = {
  "terms.yaml": `
name: terms
model: Term
managed: false
fields:
  weight: { type: Decimal, id: true }
  starts: { type: DateTime, optional: true }
  ends: { type: Date, optional: true }
  at: { type: Time, optional: true }
  seen: { type: DateTime, unique: true, optional: true }
  share: { type: Float, optional: true }
triggers: [on_create, on_update, on_delete]
`,
};
const table =
  "CREATE TABLE terms (weight numeric PRIMARY KEY, starts timestamptz, ends date, at time, seen timestamptz UNIQUE, share float4)";
const rows = `INSERT INTO terms VALUES
  ('NaN', 'infinity', '-infinity', '24:00', 'infinity', 'NaN'),
  ('Infinity', '-infinity', 'infinity', '00:00', '0044-03-15 12:00+00 BC', '-Infinity'),
  (1, '2026-03-28 14:30+00', '2026-03-28', NULL, '2026-03-28 14:30:00.123456+00', 1.5),
  (2, '0044-03-15 12:00+00 BC', '0044-03-15 BC', NULL, '12026-03-28 14:30+00', 'Infinity')`;
const shown = {
  NaN: { starts: "infinity", ends: "-infinity", at: "24:00:00", seen: "infinity", share: null },
  Infinity: {
    starts: "-infinity",
    ends: "infinity",
    at: "00:00:00",
    seen: "0044-03-15 12:00:00+00 BC",
    share: null,
  },
  1: {
    starts: "2026-03-28T14:30:00.000+00:00",
    ends: "2026-03-28",
    at: null,
    seen: "2026-03-28T14:30:00.123456+00:00",
    share: 1.5,
  },
  2: {
    starts: "0044-03-15 12:00:00+00 BC",
    ends: "0044-03-15 BC",
    at: null,
    seen: "12026-03-28T14:30:00.000+00:00",
    share: null,
  },
};
const all = Object.entries(shown).map(([weight, rest]) => ({ weight, ...rest }));

describe("values beyond what a client may send", () => {
  let service: TestService;
  let admin: TestUser;
  let receiver: TestReceiver;

  before(async () => {
    let url = "";
    service = await startService({
      mode: "servers",
      resources: files,
      async prepare(prepared) {
        url = prepared;
        await psql(url, { sql: table });
      },
    });
    admin = await service.createUser({ isAdmin: true });
    receiver = await startReceiver();
    await subscribe(admin, receiver, { resource: "terms", filter: { starts: { lt: "infinity" } } });
    await subscribe(admin, receiver, { resource: "terms", filter: { weight: { gt: "5" } } });
    await subscribe(admin, receiver, { resource: "terms", filter: { share: { null: true } } });
    await psql(url, { sql: rows });
  });
  after(async () => {
    await receiver.close();
    await service.stop();
  });

  it("are shown as PostgreSQL writes them, in lists and at the address of each record", async () => {
    const { body } = await admin.request("GET", "/resources/terms?sort=weight");
    const each = await Promise.all(
      all.map(({ weight }) => admin.request("GET", `/resources/terms/${weight}`)),
    );

    expect(body.data).to.have.deep.members(all);
    expect(each.map((one) => one.body)).to.deep.equal(all);
  });

  for (const [filter, ...weights] of [
    ["filter[starts]=infinity", "NaN"],
    ["filter[starts][ne]=infinity", "1", "2", "Infinity"],
    ["filter[starts][gt]=-infinity", "1", "2", "NaN"],
    ["filter[starts][lte]=-infinity", "Infinity"],
    ["filter[starts][null]=true"],
    ["filter[ends]=infinity", "Infinity"],
    ["filter[ends]=0044-03-15%20BC", "2"],
    ["filter[ends][null]=true"],
    ["filter[at]=24:00", "NaN"],
    ["filter[seen]=2026-03-28T14:30:00.123456Z", "1"],
    ["filter[seen]=12026-03-28T14:30:00.000%2B00:00", "2"],
    ["filter[share][null]=true", "2", "Infinity", "NaN"],
    ["filter[share][null]=false", "1"],
    ["filter[share][gte]=1", "1"],
    ["filter[share][lte]=2", "1"],
    ["filter[share][ne]=2", "1"],
    ["filter[share][not_in]=2,3", "1"],
    ["filter[weight]=NaN", "NaN"],
    ["filter[weight][in]=Infinity,2", "2", "Infinity"],
  ] as const) {
    it(`${filter} finds ${weights.length}`, async () => {
      const { body } = await admin.request("GET", `/resources/terms?sort=weight&${filter}`);

      expect(body.data?.map((one: { weight: string }) => one.weight)).to.deep.equal(weights);
    });
  }

  it("are the same in webhooks, and to their filters", async () => {
    const bodies = await deliveredBodies(receiver, 8);

    const weights = bodies.map(({ data }) => (data as { weight: string }).weight);
    expect(weights.toSorted()).to.deep.equal([
      "1",
      "2",
      "2",
      "Infinity",
      "Infinity",
      "Infinity",
      "NaN",
      "NaN",
    ]);
    for (const { data } of bodies) expect(all).to.deep.include(data);
  });
});
