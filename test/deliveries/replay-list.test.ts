import { expect } from "chai";
import { serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { notesYaml } from "../support/notes.ts";

const idsOf = ({ data }: Answer["body"]): readonly number[] =>
  data.map(({ id }: { readonly id: number }) => id);

describe("GET /webhook-replays", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });
  let ada: TestUser;
  let ben: TestUser;

  before(async () => {
    ada = await service.createUser();
    ben = await service.createUser();
    await service.infrastructure.sql(
      `INSERT INTO svc.replays (id, subscription_id, user_id, asked, state, cursor, until_id, total, is_estimate, done)
       SELECT id, webhook, owner, jsonb_build_object('since', '2026-03-28T14:30:00.500Z', 'until', '2026-03-29T00:00:00Z',
         'status', jsonb_build_array('never'), 'events', events, 'resource', null), state, 0, 9, 9, false, 9
       FROM (VALUES (1, 5, $1::int, NULL, 'done'), (2, 6, $1, '["on_create"]'::jsonb, 'paused'), (3, 5, $1, NULL, 'cancelled'),
         (4, 7, $2::int, NULL, 'done')) AS given (id, webhook, owner, events, state)`,
      [ada.id, ben.id],
    );
  });

  const list = async (query: string, by = ada): Promise<Answer["body"]> =>
    (await by.request("GET", `/webhook-replays${query}`)).body;

  it("lists the caller's own, newest first, in the form of a single one, and all for admins", async () => {
    const all = await list("");
    expect(all).to.include({ total: 3, last_page: 1 });
    for (const shown of all.data)
      expect(shown).to.deep.equal((await ada.request("GET", `/webhook-replays/${shown.id}`)).body);
    expect(all.data[1]).to.deep.include({
      id: 2,
      webhook_id: 6,
      since: "2026-03-28T14:30:00.500+00:00",
      events: ["on_create"],
      state: "paused",
    });
    expect(idsOf(await list("", ben))).to.deep.equal([4]);
    expect(idsOf(await list("", await service.createUser({ isAdmin: true })))).to.deep.equal([4, 3, 2, 1]);
  });

  for (const [query, ...ids] of [
    ["?webhook_id=5", 3, 1],
    ["?webhook_id=5&state=done,paused", 1],
    ["?webhook_id=7"],
    ["?state=paused,cancelled&sort=id", 2, 3],
    ["?filter[state]=done", 1],
    ["?filter[since][gt]=2026-03-28T14:30:00.500Z"],
  ] as const)
    it(`finds ${ids.join(", ") || "nothing"} by ${query}`, async () => {
      expect(idsOf(await list(query))).to.deep.equal(ids);
    });

  it("is read by cursor, forward and back, and counted as requested", async () => {
    const first = await list("?cursor=&per_page=2");
    const second = await list(`?cursor=${first.next_cursor}&per_page=2`);
    const back = await list(`?cursor=${second.prev_cursor}&per_page=2`);

    expect([first, second, back].map(idsOf)).to.deep.equal([[3, 2], [1], [3, 2]]);
    expect(second.next_cursor).to.equal(null);
    expect(await list("?count=none&per_page=2")).to.include({ total: null });
    expect((await list("?count=estimated&state=done")).total).to.equal(1);
    expect((await list("?fields=id,state&webhook_id=6")).data).to.deep.equal([{ id: 2, state: "paused" }]);
  });

  it("leads from a page after an estimated end to the last one", async () => {
    const { sql } = service.infrastructure;
    await sql(
      `INSERT INTO svc.replays (id, subscription_id, user_id, asked, state, cursor, until_id, total, is_estimate)
       SELECT id, 9, $1, '{}', 'cancelled', 0, 9, 9, false FROM generate_series(101, 10150) AS id`,
      [ada.id],
    );
    const behind = await list("?webhook_id=9&count=estimated&per_page=100&page=900");
    await sql("DELETE FROM svc.replays WHERE subscription_id = 9");

    expect(behind).to.include({ total: 10_050, last_page: 101 });
    expect(behind).not.to.have.property("total_is_estimate");
    expect(new URL(behind.prev_page_url).searchParams.get("page")).to.equal("101");
  });

  it("refuses unknown parameters by name", async () => {
    expect(
      (await list("?state=away&state=done&webhook_id=x&filter[status]=failed&search=x")).errors,
    ).to.deep.equal({
      state: ["The parameter was given twice.", "The selected state is invalid."],
      webhook_id: ["The webhook id field must be an integer."],
      "filter[status]": ["The field status cannot be filtered: it is a list."],
      search: [
        "There is no parameter search; expected one of filter, sort, fields, cursor, count, page, per_page, webhook_id, state.",
      ],
    });
  });
});
