import { expect } from "chai";
import { planMigration } from "../../src/app/plan-migration.ts";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { subscribe, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type TestService, type TestUser } from "../support/service.ts";

/** Names that PostgreSQL allows in quotes, and that break unquoted SQL. */
const names = [
  "two words",
  "it's",
  "sales.orders",
  "größe 訂單 😀",
  "select",
  "Upper CASE",
  "a$$b $svc$",
  "-- gone",
  "a;b",
  "100%s",
  "back\\slash\\",
  "`tick` ${x} {y}",
  "(a, b)",
  "/* c */ :d ?e $1",
  " edges ",
  "n".repeat(63),
];

function quoted(name: string): string {
  return JSON.stringify(name);
}

/**
 * Returns a resource on a table of the name. The name is in each of its columns, as far as it fits.
 */
function fileOf(name: string, index: number): string {
  const column = (ending: string): string =>
    quoted(Buffer.byteLength(name) > 60 ? `${name.slice(0, 61)}${ending}` : name + ending);
  return `
name: things${index}
model: Thing${index}
table: ${quoted(name)}
triggers: [on_create, on_update, on_delete]
ownerColumn: owner
searchableColumns: [title]
fields:
  id: { type: Int, id: true, column: ${column("0")} }
  title: { type: String, length: 40, column: ${column("")} }
  code: { type: String, optional: true, unique: true, column: ${column("2")} }
  state: { type: Enum, values: ["it's", "b\\\\c"], default: "it's", column: ${column("3")} }
  tags: { type: Uuid, list: true, default: ["018f3c5e-7b1a-7000-8000-0123456789ab"], column: ${column("4")} }
  parent: { type: Int, optional: true, references: things${index}.id, as: above, onDelete: restrict, column: ${column("5")} }
  price: { type: Decimal, precision: 9, scale: 2, default: 1.5, column: ${column("6")} }
  owner: { type: Int, column: ${column("7")} }
baseQuery: { where: { price: { gt: 0 } }, orderBy: [{ title: asc }] }
createRules:
  title: required|string|max:40|unique:things${index},title
  code: nullable|string
  state: 'in:it''s,b\\c'
  parent: nullable|integer|exists:things${index},id
`;
}

for (const mode of modes) {
  describe(`tables and columns of hostile names (${mode})`, function () {
    this.timeout(180_000);
    let service: TestService;
    let receiver: TestReceiver;
    let user: TestUser;

    before(async () => {
      receiver = await startReceiver();
      const files = names.map((name, index) => [`things${index}.yaml`, fileOf(name, index)]);
      service = await startService({ mode, resources: Object.fromEntries(files) as Record<string, string> });
      user = await service.createUser();
    });
    after(async () => {
      await service.stop();
      await receiver.close();
    });

    it("leave nothing to migrate a second time", async () => {
      const definitions = await loadDefinitions(service.config.configDir);

      const plan = await planMigration({ url: service.infrastructure.databaseUrl, definitions });

      expect(plan).to.deep.equal({
        byHand: [],
        core: [],
        steps: [],
        losses: [],
        impossible: [],
        notes: [],
        leftAlone: [],
        changed: [],
        referred: [],
      });
    });

    for (const [index, name] of names.entries()) {
      it(`are served and captured: ${name}`, async () => {
        const path = `/resources/things${index}`;
        const hook = await subscribe(user, receiver, { resource: `things${index}` });

        const created = await user.request("POST", path, { title: "100%_a\\b", state: "b\\c" });
        expect(created.status, JSON.stringify(created.body)).to.equal(201);
        const { id } = created.body;
        expect((await user.request("POST", path, { title: "100%_a\\b" })).status).to.equal(422);
        expect((await user.request("POST", path, { title: "x", parent: 999 })).status).to.equal(422);

        const list = await user.request("GET", `${path}?search=${encodeURIComponent("%_A\\")}`);
        expect(list.body.data.map((record: { id: number }) => record.id)).to.deep.equal([id]);
        expect((await user.request("GET", `${path}?search=none`)).body.data).to.deep.equal([]);

        const updated = await user.request("PUT", `${path}/${id}`, { title: "new" });
        expect(updated.body).to.include({ id, title: "new", state: "b\\c" });
        expect((await user.request("DELETE", `${path}/${id}`)).status).to.equal(204);
        expect((await user.request("GET", `${path}/${id}`)).status).to.equal(404);

        await untilDelivery(user, hook.id, "delivered");
        const { rows } = await service.infrastructure.database.pool.query<{ line: string }>(
          `SELECT concat_ws('|', trigger, record_id, owner_id, snapshot->>'title', snapshot->>'price') AS line
           FROM svc.events WHERE resource = $1 ORDER BY id`,
          [`things${index}`],
        );
        expect(rows.map(({ line }) => line)).to.deep.equal([
          `on_create|${id}|${user.id}|100%_a\\b|1.50`,
          `on_update|${id}|${user.id}|new|1.50`,
          `on_delete|${id}|${user.id}|new|1.50`,
        ]);
      });
    }
  });
}
