import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";

const namesOf = (body: Answer["body"]): unknown[] => body.data.map(({ name }: { name: string }) => name);
const idsOf = (body: Answer["body"]): number[] => body.data.map(({ id }: { id: number }) => id);

describe("lists of tokens and users", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });
  let ada: TestUser;
  let admin: TestUser;

  before(async () => {
    ada = await service.createUser({ name: "Ada" });
    admin = await service.createUser({ name: "Root", isAdmin: true });
    const { sql } = service.infrastructure;
    await sql(
      `INSERT INTO svc.users (name, email, disabled_at) SELECT CASE WHEN n % 3 = 0 THEN 'Grace' ELSE 'Lin' END,
         'u' || n || '@example.com', CASE WHEN n % 4 = 0 THEN timestamptz '2026-03-28T12:30:00.123Z' + n * interval '1 day' END
       FROM generate_series(1, 20) AS n`,
    );
    await sql(
      `INSERT INTO svc.tokens (user_id, name, hash, scopes, expires_at) SELECT $1, 't' || n, sha256(n::text::bytea),
         CASE WHEN n % 2 = 0 THEN '{read,webhooks}'::text[] ELSE '{write}'::text[] END,
         CASE WHEN n % 3 = 0 THEN now() + n * interval '1 day' END
       FROM generate_series(1, 12) AS n`,
      [ada.id],
    );
  });

  for (const [query, ...names] of [
    ["filter[name]=t1,t2", "t2", "t1"],
    ["filter[scopes][has]=read&filter[id][null]=false&sort=id&per_page=2", "t2", "t4"],
    ["filter[expires_at][null]=false&sort=-expires_at", "t12", "t9", "t6", "t3"],
    ["filter[or][0][name][ends_with]=11&filter[or][1][name]=t7&fields=name", "t11", "t7"],
    ["filter[not][scopes][has]=webhooks&sort=expires_at&per_page=3", "t3", "t9", "t11"],
  ] as const)
    it(`GET /tokens?${query} finds ${names.join(", ")}`, async () => {
      expect(namesOf((await ada.request("GET", `/tokens?${query}`)).body)).to.deep.equal(names);
    });

  for (const [query, count] of [
    ["filter[name]=Grace", 6],
    ["filter[is_disabled]=true", 5],
    ["filter[disabled_at]=2026-04-01T12:30:00.123Z", 1],
    ["filter[email][starts_with]=U1&filter[name]=Lin", 8],
    ["filter[is_admin]=true", 1],
  ] as const)
    it(`GET /users?${query} finds ${count}`, async () => {
      const { body } = await admin.request("GET", `/users?${query}&per_page=100`);

      expect([body.data.length, body.total]).to.deep.equal([count, count]);
    });

  it("shows the same as before, in the same order", async () => {
    const { body } = await ada.request("GET", "/tokens?per_page=1&filter[name]=t12");
    const { body: users } = await admin.request("GET", "/users?per_page=2");

    expect(Object.keys(body.data[0])).to.deep.equal(
      "id user_id name scopes parent_id created_at last_used_at expires_at revoked_at".split(" "),
    );
    expect(body.data[0]).to.deep.include({ user_id: ada.id, scopes: ["read", "webhooks"], parent_id: null });
    expect(body.data[0].expires_at).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    const shown = await admin.request("GET", `/users/${ada.id}`);
    expect(users.data[0]).to.deep.equal(shown.body);
    expect(Object.keys(users.data[0])).to.deep.equal(Object.keys(shown.body));
  });

  for (const path of [
    "/users?sort=name,-disabled_at",
    "/users?sort=-disabled_at",
    "/users?",
    "/users?filter[name]=Lin",
  ])
    it(`GET ${path} has the same pages by cursor, forwards and back, as by number`, async () => {
      const whole = idsOf((await admin.request("GET", `${path}&per_page=100`)).body);
      const pages: number[][] = [];
      let { body } = await admin.request("GET", `${path}&per_page=4&cursor=`);
      for (;;) {
        pages.push(idsOf(body));
        if (body.next_page_url === null) break;
        ({ body } = await admin.request("GET", body.next_page_url.slice(service.baseUrl.length)));
      }
      expect(pages.flat()).to.deep.equal(whole);
      for (const page of pages.slice(0, -1).toReversed()) {
        ({ body } = await admin.request("GET", body.prev_page_url.slice(service.baseUrl.length)));
        expect(idsOf(body)).to.deep.equal(page);
      }
      expect(body.prev_page_url).to.equal(null);
    });

  it("counts as it is asked to", async () => {
    const [none, estimated, exact] = await Promise.all(
      ["none", "estimated", "exact"].map((count) =>
        ada.request("GET", `/tokens?count=${count}&per_page=13&page=1`),
      ),
    );

    expect(none?.body).to.include({ total: null, last_page: null, next_page_url: null });
    expect(estimated?.body).to.include({ total: 13, last_page: 1 });
    expect(exact?.body).to.deep.equal(estimated?.body);
    const { body } = await ada.request("GET", "/tokens?count=none&per_page=12");
    expect(body.next_page_url).to.contain("page=2");
  });

  it("shows a user's tokens to admins in the same way, and limits a cursor to its list and user", async () => {
    const path = `/users/${ada.id}/tokens?filter[name][starts_with]=t&cursor=`;
    const { body } = await admin.request("GET", `${path}&per_page=5`);
    const statusOf = async (user: TestUser, asked: string): Promise<number> =>
      (await user.request("GET", `${asked}${body.next_cursor}`)).status;

    expect(namesOf(body)).to.deep.equal(["t12", "t11", "t10", "t9", "t8"]);
    expect(await statusOf(admin, path)).to.equal(200);
    expect(await statusOf(admin, path.replace("=t&", "=T&"))).to.equal(422);
    expect(await statusOf(admin, path.replace(String(ada.id), String(admin.id)))).to.equal(422);
    expect(await statusOf(ada, "/tokens?filter[name][starts_with]=t&cursor=")).to.equal(422);
  });

  it("refuses unsupported parameters, by the name as it was written", async () => {
    const { status, body } = await ada.request(
      "GET",
      "/tokens?filter[nmae]=a&filter[scopes]=read&sort=scopes&fields=hash&search=a&count=some&include=user",
    );

    expect(status).to.equal(422);
    expect(body.errors["filter[nmae]"]).to.deep.equal(["There is no field nmae; did you mean name?"]);
    expect(Object.keys(body.errors)).to.have.members(
      "filter[nmae] filter[scopes] sort fields search count include".split(" "),
    );
    expect((await admin.request("GET", "/users?filter[issuer]=a")).status).to.equal(422);
  });
});
