import { expect } from "chai";
import { startListApi, type ListAnswer, type ListUser } from "../support/list-api.ts";
import { ofSuite } from "../support/of-suite.ts";

describe("GET /webhooks", () => {
  const api = ofSuite(startListApi, (opened) => opened.close());
  /** Oldest first. */
  let ids: number[];

  async function add(
    user: ListUser,
    url: string,
    rest = "'orders', '{on_create}', true, NULL",
  ): Promise<number> {
    const [row] = await api.core.sql<{ id: number }>(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, description, encrypted_secret, secret_hint)
       SELECT $1, $2, ${rest}, '', 'hint' RETURNING id`,
      [user.id, url],
    );
    return row?.id ?? 0;
  }

  beforeEach(async () => {
    await api.core.sql("DELETE FROM svc.subscriptions");
    ids = [
      await add(api.ada, "https://b.example.com"),
      await add(api.ada, "https://a.example.com", "'orders', '{on_create,on_delete}', false, 'Shop'"),
      await add(api.ada, "https://c.example.com", "'notes', '{on_update}', true, '50% off'"),
    ];
    await add(api.ben, "https://a.example.com");
  });

  const get = (query = "", user = api.ada): Promise<ListAnswer> => api.get(`/webhooks${query}`, user);
  /** Returns the places of the answered subscriptions, from 0. */
  const found = async (query: string): Promise<readonly number[]> =>
    (await get(query)).data.map(({ id }) => ids.indexOf(id as number));

  it("answers all of the caller's own, newest first, and nothing but data", async () => {
    const { json } = await get();

    expect(Object.keys(json)).to.deep.equal(["data"]);
    expect(await found("")).to.deep.equal([2, 1, 0]);
  });

  for (const [query, ...places] of [
    ["?filter[resource]=orders", 1, 0],
    ["?filter[is_active]=true", 2, 0],
    ["?filter[url][contains]=A.EXAMPLE", 1],
    ["?filter[events][has]=on_create", 1, 0],
    ["?filter[events][has_any]=on_update,on_delete", 2, 1],
    ["?filter[events][has_all]=on_create,on_delete", 1],
    ["?filter[description][null]=true", 0],
    ["?filter[description][contains]=50%25", 2],
    ["?filter[or][0][resource]=notes&filter[or][1][is_active]=false", 2, 1],
    ["?filter[created_at][lt]=2020-01-01"],
    ["?sort=url", 1, 0, 2],
    ["?sort=-url", 2, 0, 1],
    ["?sort=resource", 2, 1, 0],
    ["?sort=description", 2, 1, 0],
    ["?filter[resource]=orders&sort=id&page=2&per_page=1", 1],
  ] as const) {
    it(`${query} finds ${places.join(", ") || "nothing"}`, async () => {
      expect(await found(query)).to.deep.equal(places);
    });
  }

  it("shows only the requested fields", async () => {
    expect((await get("?fields=id,masked_secret&filter[resource]=notes")).json).to.deep.equal({
      data: [{ id: ids[2], masked_secret: "sec_****hint" }],
    });
  });

  it("answers the envelope of a page where one is requested", async () => {
    const { json } = await get("?per_page=2&sort=id");

    expect(json).to.deep.include({
      current_page: 1,
      last_page: 2,
      per_page: 2,
      total: 3,
      next_page_url: "https://api.example.com/svc-api/webhooks?per_page=2&sort=id&page=2",
      prev_page_url: null,
    });
    expect((await get("?count=none&per_page=2")).json).to.include({ total: null, last_page: null });
    expect((await get("?count=none&per_page=2&page=2")).json).to.include({ next_page_url: null });
  });

  it("reads forwards and back by cursor, also past a subscription that is deleted meanwhile", async () => {
    const first = await get("?cursor=&per_page=1&sort=url");
    const second = await get(`?cursor=${String(first.json["next_cursor"])}&per_page=1&sort=url`);
    await api.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [ids[0]]);
    const third = await get(`?cursor=${String(second.json["next_cursor"])}&per_page=1&sort=url`);
    const back = await get(`?cursor=${String(third.json["prev_cursor"])}&per_page=5&sort=url`);

    const urls = [first, second, third, back].map(({ data }) => data.map(({ url }) => url));
    expect(urls).to.deep.equal([
      ["https://a.example.com"],
      ["https://b.example.com"],
      ["https://c.example.com"],
      ["https://a.example.com"],
    ]);
    expect(first.json).to.include({ per_page: 1, prev_cursor: null });
    expect(first.json).not.to.have.any.keys("total", "current_page");
    expect([third.json["next_cursor"], back.json["prev_cursor"]]).to.deep.equal([null, null]);
    expect(back.json["next_cursor"]).to.be.a("string");
  });

  it("refuses a cursor of another order, filter or user, and an invalid one", async () => {
    const cursor = String((await get("?cursor=&per_page=1")).json["next_cursor"]);
    const message =
      "The cursor is not one of this list with this filter, sort and search. Begin with an empty one.";

    for (const [query, user] of [
      [`?cursor=${cursor}&sort=id`, api.ada],
      [`?cursor=${cursor}&filter[id]=1`, api.ada],
      [`?cursor=${cursor}`, api.ben],
      ["?cursor=abc", api.ada],
    ] as const)
      expect(await get(query, user)).to.deep.include({ status: 422, errors: { cursor: [message] } });
    expect((await get(`?per_page=2&cursor=${cursor}`)).status).to.equal(200);
  });

  it("refuses unknown parameters", async () => {
    const { status, errors } = await get(
      "?resource=orders&filter[masked_secret]=x&filter[urll]=x&sort=events&search=a&include=user",
    );

    expect(status).to.equal(422);
    expect(errors).to.deep.equal({
      resource: ["There is no parameter resource; a filter is written as filter[resource]."],
      "filter[masked_secret]": ["The field masked_secret cannot be filtered: it is a secret."],
      "filter[urll]": ["There is no field urll; did you mean url?"],
      sort: ["The field events cannot be sorted."],
      search: [
        "There is no parameter search; expected one of filter, sort, fields, cursor, count, page, per_page, user_id.",
      ],
      include: ["There is no relation user to include."],
    });
  });
});
