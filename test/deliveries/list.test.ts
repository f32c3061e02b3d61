import { expect } from "chai";
import { deliveryFilter, deliveryShape } from "../../src/deliveries/list-filter.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { stateSql } from "../support/delivery-states.ts";
import { startListApi, type ListAnswer, type ListApi } from "../support/list-api.ts";

const noBounds = { fromId: undefined, toId: undefined };
const nothing = {
  userId: 7,
  subscriptionId: undefined,
  statuses: undefined,
  narrowing: undefined,
  eventId: undefined,
  ...noBounds,
};

describe("deliveryFilter", () => {
  for (const [query, expected] of [
    ["", {}],
    ["webhook_id=3&status=failed&event_id=9", { subscriptionId: 3, statuses: ["failed"], eventId: "9" }],
    ["webhook_id=3&webhook_id=4", { subscriptionId: 4 }],
    [
      "filter[subscription_id]=3&filter[status]=failed&filter[event_id]=9",
      { subscriptionId: 3, statuses: ["failed"], eventId: "9" },
    ],
    ["filter[status]=failed&status=failed", { statuses: ["failed"] }],
    ["filter[status]=failed&status=pending", undefined],
    ["filter[status]=failed&filter[status][eq]=pending", undefined],
    ["filter[id]=5", { fromId: "5", toId: "5" }],
    ["filter[id][gt]=5&filter[id][gte]=4&filter[id][lt]=9", { fromId: "6", toId: "8" }],
    ["filter[id][between]=5,9&filter[id][lte]=7", { fromId: "5", toId: "7" }],
    ["filter[id][gt]=9223372036854775807", undefined],
    ["filter[id][lt]=-9223372036854775808", undefined],
    ["filter[id][gte]=-1", {}],
    ["filter[id][between]=9,5", undefined],
  ] as const) {
    it(`accepts ${query || "no filter"}`, () => {
      const parameters = readListParameters(query, deliveryShape, { maxPerPage: 15 });

      expect(deliveryFilter(parameters, { id: 7, isAdmin: false })).to.deep.equal(
        expected && { ...nothing, ...expected },
      );
    });
  }

  it("lists those of all users for an admin", () => {
    const parameters = readListParameters("", deliveryShape, { maxPerPage: 15 });

    expect(deliveryFilter(parameters, { id: 7, isAdmin: true })).to.include({ userId: undefined });
  });
});

const idsOf = ({ data }: ListAnswer): readonly unknown[] => data.map(({ id }) => id);

describe("GET /webhook-deliveries", () => {
  let api: ListApi;
  /** Ada's deliveries 1 to 6, Ben's 7. */
  const statuses = ["delivered", "failed", "retrying", "pending", "cancelled", "retrying"];

  before(async () => {
    api = await startListApi({ lookThrough: 2 });
    await api.core.sql(`INSERT INTO svc.events (id, resource, trigger, record_id, snapshot, occurred_at)
      SELECT id, 'notes', CASE id WHEN 101 THEN 'on_update' WHEN 102 THEN 'delivery.failed' ELSE 'on_create' END, (id % 2)::text, '{}', now()
      FROM generate_series(100, 103) AS id`);
    for (const [index, status] of [...statuses, "retrying"].entries()) {
      const user = index < statuses.length ? api.ada.id : api.ben.id;
      await api.core.sql(
        `WITH made AS (
          INSERT INTO svc.deliveries (root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, max_attempts, url, status, attempt, last_error, created_at)
          SELECT $1::int, gen_random_uuid(), 100 + $1::int / 2, gen_random_uuid(), $2::int, $2::int,
            CASE $1::int WHEN 2 THEN 'orders' ELSE 'notes' END, 'manual', 3, 'http://127.0.0.1:' || 8 + $1::int % 2 || '/', $3, ${stateSql("$3").attempt}, ${stateSql("$3").lastError},
            '2030-01-01T00:00:00Z'::timestamptz + $1::int * interval '1 hour' RETURNING id
        ) INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, is_retry)
        SELECT id, $2, $2, CASE $3 WHEN 'pending' THEN false END FROM made WHERE $3 IN ('pending', 'retrying')`,
        [index + 1, user, status],
      );
    }
    // While its flight ends, a delivery is also in the queue.
    await api.core.sql("INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ('{3}', now())");
  });
  after(() => api.close());

  const get = (query: string, user = api.ada): Promise<ListAnswer> =>
    api.get(`/webhook-deliveries${query}`, user);

  for (const [query, ...ids] of [
    ["", 6, 5, 4, 3, 2, 1],
    ["?sort=id", 1, 2, 3, 4, 5, 6],
    ["?sort=-id&per_page=2&page=2", 4, 3],
    ["?sort=id&per_page=2&page=3", 5, 6],
    ["?filter[id][gt]=4", 6, 5],
    ["?filter[id][between]=2,4&sort=id", 2, 3, 4],
    ["?filter[status]=retrying", 6, 3],
    ["?filter[status]=retrying&sort=id&filter[id][gt]=3", 6],
    ["?filter[status]=pending&filter[id][lt]=5", 4],
    ["?filter[status]=failed&filter[id][lte]=2", 2],
    ["?filter[status]=failed&filter[id][lt]=2"],
    ["?filter[status]=delivered&filter[id]=1", 1],
    ["?filter[event_id]=101", 3, 2],
    ["?filter[event_id]=101&filter[id][gt]=2", 3],
    ["?filter[event_id]=101&sort=id", 2, 3],
    ["?status=failed&filter[status]=retrying"],
    ["?status=failed", 2],
    ["?status=failed,cancelled,pending", 5, 4, 2],
    ["?status=delivered,retrying&per_page=2&page=2", 1],
    ["?status=retrying,failed&sort=id&filter[id][gt]=2", 3, 6],
    ["?status=failed,retrying&filter[status]=retrying", 6, 3],
    ["?status=pending,retrying,delivered,failed,cancelled", 6, 5, 4, 3, 2, 1],
  ] as const) {
    it(`${query || "without parameters"} finds ${ids.join(", ") || "nothing"}`, async () => {
      const answer = await get(query);

      expect(answer.status).to.equal(200);
      expect(idsOf(answer)).to.deep.equal(ids);
    });
  }

  it("finds those of all users for an admin, retrying ones without the pending ones before them", async () => {
    expect(idsOf(await get("?filter[status]=retrying", api.admin))).to.deep.equal([7, 6, 3]);
    expect(idsOf(await get("?filter[status]=retrying&sort=id&filter[id][lt]=7", api.admin))).to.deep.equal([
      3, 6,
    ]);
    expect(idsOf(await get(`?filter[subscription_id]=${api.ben.id}`, api.admin))).to.deep.equal([7]);
    expect(idsOf(await get(`?filter[subscription_id]=${api.ben.id}`))).to.deep.equal([]);
  });

  it("shows only the requested fields", async () => {
    expect((await get("?fields=id,status,url&filter[id]=2")).data).to.deep.equal([
      { id: 2, status: "failed", url: "http://127.0.0.1:8/" },
    ]);
  });

  it("counts, or does not", async () => {
    expect((await get("?per_page=4")).json).to.include({ total: 6, last_page: 2, per_page: 4 });
    const uncounted = (await get("?per_page=4&count=none")).json;
    expect(uncounted).to.include({ total: null, last_page: null });
    expect(uncounted["next_page_url"]).to.match(/page=2$/);
    expect((await get("?per_page=4&count=none&page=2")).json["next_page_url"]).to.equal(null);
    expect((await get("?status=failed&filter[status]=pending")).json).to.include({ total: 0, last_page: 1 });
  });

  for (const query of [
    "",
    "&sort=id",
    "&filter[id][lte]=5",
    "&filter[status]=retrying",
    "&filter[event_id]=101",
  ])
    it(`reads all forward and back by cursor: ${query || "all"}`, async () => {
      const all = idsOf(await get(`?per_page=100${query}`));
      const forth: unknown[] = [];
      let page = await get(`?cursor=&per_page=2${query}`);
      expect(page.json["prev_cursor"]).to.equal(null);
      for (;;) {
        forth.push(...idsOf(page));
        const next = page.json["next_cursor"];
        if (next === null) break;
        page = await get(`?cursor=${next as string}&per_page=2${query}`);
      }
      const back = [...idsOf(page)];
      while (page.json["prev_cursor"] !== null) {
        const left = idsOf(page);
        page = await get(`?cursor=${page.json["prev_cursor"] as string}&per_page=2${query}`);
        back.unshift(...idsOf(page));
        const next = await get(`?cursor=${page.json["next_cursor"] as string}&per_page=2${query}`);
        expect(idsOf(next)).to.deep.equal(left);
      }

      expect(forth).to.deep.equal(all);
      expect(back).to.deep.equal(all);
    });

  /** Returns the ids by cursor; each page examines two of the deliveries. */
  async function walk(
    query: string,
    user = api.ada,
  ): Promise<{ readonly ids: readonly unknown[]; readonly pages: number }> {
    const ids: unknown[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const page = await get(`?cursor=${cursor}&${query}`, user);
      expect(page.status, JSON.stringify(page.json)).to.equal(200);
      ids.push(...idsOf(page));
      cursor = page.json["next_cursor"] as string | null;
    }
    return { ids, pages };
  }

  for (const [query, ...ids] of [
    ["resource=orders", 2],
    ["resource=notes&sort=id", 1, 3, 4, 5, 6],
    ["event=on_update", 3, 2],
    ["event=on_delete"],
    ["event=delivery.failed", 5, 4],
    ["record_id=0&status=pending,cancelled,delivered", 5, 4, 1],
    ["url=http://127.0.0.1:9/", 5, 3, 1],
    ["url=http://127.0.0.1:9/&status=retrying", 3],
    ["created_after=2030-01-01T03:00:00Z", 6, 5, 4],
    ["created_before=2030-01-01T03:00:00Z", 2, 1],
    ["created_after=2030-01-01T02:00:00Z&created_before=2030-01-01T05:00:00Z&sort=id", 3, 4],
    ["created_after=2031-01-01"],
    ["event_id=101&url=http://127.0.0.1:8/", 2],
  ] as const)
    it(`${query} finds ${ids.join(", ") || "nothing"}, scanning two at a time`, async () => {
      expect((await walk(query)).ids).to.deep.equal(ids);
    });

  it("finds the deliveries of a record by its events, and scans no others", async () => {
    for (const [query, pages, ...ids] of [
      ["record_id=9", 1],
      ["record_id=1&resource=orders", 1],
      ["record_id=1&resource=notes", 2, 6, 3],
      ["record_id=1&event=on_update", 2, 3, 2],
      ["record_id=1&filter[id][lt]=3", 1, 2],
    ] as const)
      expect(await walk(query), query).to.deep.equal({ ids, pages });
    expect((await walk("record_id=1", api.ben)).ids).to.deep.equal([7]);
  });

  it("goes back over pages without matches", async () => {
    const { pages } = await walk("resource=orders&per_page=1");
    expect(pages).to.be.at.least(3);
    let page = await get("?cursor=&resource=notes&per_page=1&sort=id");
    while (page.json["next_cursor"] !== null)
      page = await get(`?cursor=${page.json["next_cursor"] as string}&resource=notes&per_page=1&sort=id`);
    const back: unknown[] = [];
    while (page.json["prev_cursor"] !== null) {
      page = await get(`?cursor=${page.json["prev_cursor"] as string}&resource=notes&per_page=1&sort=id`);
      back.unshift(...idsOf(page));
    }
    expect(back).to.deep.equal([1, 3, 4, 5]);
  });

  it("counts the matches of one scan, and marks an estimate when it did not see all", async () => {
    expect((await get("?resource=notes")).json).to.include({ total: 2, total_is_estimate: true });
    expect((await get("?resource=notes&filter[id][gte]=6")).json).not.to.have.property("total_is_estimate");
  });

  it("refuses impossible values", async () => {
    const { errors } = await get(
      "?resource=&event=x&record_id=%00&url=&created_after=soon&created_before=2030-13-01&status=failed,x",
    );

    expect(errors).to.deep.equal({
      status: ["The selected status is invalid."],
      resource: ["The resource field must not be empty."],
      event: [
        "The event field must be one of on_create, on_update, on_delete, webhook.failing, webhook.disabled, delivery.failed.",
      ],
      record_id: ["The record id field must not contain NUL characters."],
      url: ["The url field must not be empty."],
      created_after: ["The created after field must be a date, such as 2026-03-28T14:30:00Z."],
      created_before: ["The created before field must be a date, such as 2026-03-28T14:30:00Z."],
    });
  });

  it("refuses a repeated or undecodable filter, except the earliest parameters", async () => {
    const { errors } = await get("?resource=notes&resource=orders&url=%e0&record_id=1&record_id=1");

    expect(errors).to.deep.equal({
      resource: ["The parameter was given twice."],
      url: ["The percent-encoding is broken."],
      record_id: ["The parameter was given twice."],
    });
    expect(idsOf(await get("?status=failed&status=pending&event_id=100&event_id=102"))).to.deep.equal([4]);
  });

  it("links to the pages around one that was read by cursor", async () => {
    const { json } = await get("?per_page=2&cursor=&status=retrying");

    expect(Object.keys(json)).to.deep.equal([
      "data",
      "per_page",
      "next_cursor",
      "prev_cursor",
      "next_page_url",
      "prev_page_url",
    ]);
    const second = (await get("?per_page=1&cursor=&status=retrying")).json["next_page_url"];
    expect(new URL(String(second)).searchParams.get("status")).to.equal("retrying");
  });

  it("refuses a cursor of another filter or user", async () => {
    const cursor = String((await get("?cursor=&per_page=2")).json["next_cursor"]);

    expect((await get(`?cursor=${cursor}&status=failed`)).status).to.equal(422);
    expect((await get(`?cursor=${cursor}`, api.admin)).status).to.equal(422);
    expect((await get(`?cursor=${cursor}&per_page=5`)).status).to.equal(200);
  });

  it("refuses filters without an index and unknown parameters, all at once", async () => {
    const why = "without an index, and there may be millions of deliveries";
    const { status, errors } = await get(
      "?filter[url]=x&filter[id][in]=1&filter[status]=failed,pending&filter[not][id]=1&sort=created_at&count=exact&webhook_id=x&status=gone&event_id=0&user_id=1",
    );

    expect(status).to.equal(422);
    expect(errors).to.deep.equal({
      "filter[url]": ["There is no filter[url] here; use the parameter url."],
      "filter[id][in]": ["The operator in is not for id; expected one of eq, lt, lte, gt, gte, between."],
      "filter[status]": ["eq takes one value; write \\, for a comma in it."],
      "filter[not][id]": ["This list has no groups of conditions."],
      sort: [`The field created_at cannot be sorted: it is ${why}.`],
      count: ["The value of count must be one of estimated, none."],
      webhook_id: ["The webhook id field must be an integer."],
      status: ["The selected status is invalid."],
      event_id: ["The event id field must be an integer."],
      user_id: [
        "There is no parameter user_id; expected one of filter, sort, fields, cursor, count, page, per_page, webhook_id, status, event_id, resource, event, record_id, url, created_after, created_before.",
      ],
    });
  });
});
