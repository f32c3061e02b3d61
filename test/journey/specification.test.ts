import { expect } from "chai";
import { call } from "../support/http.ts";
import { modes, request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { create, shop } from "./shop.ts";

type Body = Answer["body"];

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The numbers are the sections of the specification; "contract" is the contract's section 4. */
for (const mode of modes) {
  describe(`specification (${mode})`, () => {
    const service = serviceOfSuite({ mode, resources: shop });
    let ada: TestUser;
    let admin: TestUser;
    let count = 0;

    before(async () => {
      ada = await service.createUser({ name: "Ada Lovelace" });
      admin = await service.createUser({ isAdmin: true });
    });

    /** Creates a user without records. */
    const fresh = (): Promise<TestUser> => service.createUser();

    const order = (user: TestUser, changes: object = {}): Promise<Body> =>
      create(user, "orders", { reference: `R-${(count += 1)}`, amount: "10.50", ...changes });

    describe("2.2 and 4.3, GET /resources", () => {
      it("lists name, model and triggers of every resource", async () => {
        const answer = await ada.request("GET", "/resources");

        expect(answer.status).to.equal(200);
        expect(Object.keys(answer.body)).to.deep.equal(["data"]);
        expect(answer.body.data).to.have.deep.members([
          { name: "customers", model: "Customer", triggers: [] },
          { name: "orders", model: "Order", triggers: ["on_create", "on_update"] },
          { name: "kinds", model: "Kind", triggers: ["on_create", "on_update", "on_delete"] },
          { name: "pages", model: "Page", triggers: ["on_delete"] },
          { name: "logs", model: "Log", triggers: [] },
        ]);
      });
    });

    describe("2.3 and 4.2, GET /whoami", () => {
      it("shows only id, name and email of the token's user", async () => {
        const answer = await ada.request("GET", "/whoami");

        expect(answer.status).to.equal(200);
        expect(answer.body).to.deep.equal({ id: ada.id, name: "Ada Lovelace", email: ada.email });
      });
    });

    describe("2.4, 4.4 and 8, GET /resources/{name}", () => {
      it("answers an empty list with the defaults, and with one page", async () => {
        const { status, body } = await (await fresh()).request("GET", "/resources/orders");

        expect(status).to.equal(200);
        expect(body).to.deep.equal({
          data: [],
          current_page: 1,
          last_page: 1,
          per_page: 15,
          total: 0,
          next_page_url: null,
          prev_page_url: null,
        });
      });

      it("cuts the list into pages of 15, or of per_page, with links that keep the query", async () => {
        const user = await fresh();
        for (let i = 0; i < 16; i += 1) await create(user, "kinds", { text: `kind ${i}` });
        const list = async (query = ""): Promise<Body> =>
          (await user.request("GET", `/resources/kinds${query}`)).body;
        const url = `${service.baseUrl}/resources/kinds`;

        const [first, second, middle, past] = [
          await list(),
          await list("?page=2"),
          await list("?per_page=5&page=2&search=k"),
          await list("?page=9"),
        ];

        expect(first).to.include({
          current_page: 1,
          last_page: 2,
          per_page: 15,
          total: 16,
          prev_page_url: null,
        });
        expect(first.data).to.have.length(15);
        expect(first.next_page_url).to.equal(`${url}?page=2`);
        expect(second.data).to.have.length(1);
        expect(second).to.include({ next_page_url: null, prev_page_url: `${url}?page=1` });
        expect(middle).to.include({ current_page: 2, last_page: 4, per_page: 5, total: 16 });
        expect(new URL(middle.next_page_url).searchParams.toString()).to.equal("per_page=5&page=3&search=k");
        expect(new URL(middle.prev_page_url).searchParams.toString()).to.equal("per_page=5&page=1&search=k");
        expect(past).to.deep.include({ data: [], current_page: 9, last_page: 2, next_page_url: null });
        expect(
          (await request({ url: past.prev_page_url, method: "GET", token: user.token })).body.data,
        ).to.have.length(1);
        expect((await list("?per_page=1000")).per_page).to.equal(100);
      });

      it("shows each record once over all pages, also where the order is not total", async () => {
        const user = await fresh();
        const made: number[] = [];
        for (let i = 0; i < 7; i += 1) made.push((await order(user)).id);
        const seen: number[] = [];
        let url: string | null = `${service.baseUrl}/resources/orders?per_page=2`;
        while (url !== null) {
          const page: Body = (await request({ url, method: "GET", token: user.token })).body;
          seen.push(...page.data.map(({ id }: Body) => id));
          url = page.next_page_url;
        }

        expect(seen).to.deep.equal(made);
      });

      it("searches the searchable columns, any of them, in any case and at any position", async () => {
        const user = await fresh();
        const byReference = await order(user, { reference: `Alpha-${count}` });
        const byNotes = await order(user, { notes: "an ALPHABET" });
        await order(user, { notes: "beta" });
        const search = async (term: string): Promise<readonly Body[]> =>
          (await user.request("GET", `/resources/orders?search=${term}`)).body.data;

        expect(await search("alpha")).to.deep.equal([byReference, byNotes]);
        expect(await search("open")).to.deep.equal([]);
        expect(await search("")).to.have.length(3);
      });

      it("uses applySearch instead of the searchable columns", async () => {
        const user = await fresh();
        await create(user, "pages", { slug: `a-${user.id}`, title: "b" });
        const searched = async (term: string): Promise<number> =>
          (await user.request("GET", `/resources/pages?search=${term}`)).body.total;

        expect([await searched(`a-${user.id}`), await searched("b")]).to.deep.equal([1, 0]);
      });

      it("ignores search without searchable columns", async () => {
        const user = await fresh();
        await create(user, "kinds", { text: "a" });

        expect((await user.request("GET", "/resources/kinds?search=nothing")).body.total).to.equal(1);
      });

      it("starts from the base query: its relations, scope and order", async () => {
        const user = await fresh();
        const customer = await create(user, "customers", { name: "Acme" });
        const open = await order(user, { customer_id: customer.id });
        const hidden = await user.request("POST", "/resources/orders", {
          reference: "H",
          amount: 1,
          is_hidden: true,
        });
        const shipped = await order(user);
        await user.request("PUT", `/resources/orders/${shipped.id}`, { status: "shipped" });

        const { data } = (await user.request("GET", "/resources/orders")).body;

        expect(data.map(({ id, customer: shown }: Body) => [id, shown])).to.deep.equal([
          [shipped.id, { id: null, name: null }],
          [open.id, { id: customer.id, name: "Acme" }],
        ]);
        expect((await user.request("GET", `/resources/orders/${hidden.body.id}`)).status).to.equal(404);
        await create(user, "pages", { slug: `x-${user.id}`, title: "a" });
        await create(user, "pages", { slug: `w-${user.id}`, title: "b" });
        const pages = (await user.request("GET", "/resources/pages")).body.data;
        expect(pages.map(({ heading }: Body) => heading)).to.deep.equal(["B", "A"]);
      });
    });

    describe("4.5, GET /resources/{name}/{id}", () => {
      it("shows the transformed record, not wrapped", async () => {
        const { id, reference } = await order(ada, { notes: "n" });

        const { status, body } = await ada.request("GET", `/resources/orders/${id}`);

        expect(status).to.equal(200);
        const { created_at, updated_at, ...rest } = body;
        expect(rest).to.deep.equal({
          id,
          reference,
          status: "open",
          amount: "10.50",
          notes: "n",
          customer: { id: null, name: null },
          kind: "order",
        });
        expect(created_at).to.match(dateTime);
        expect(updated_at).to.match(dateTime);
      });

      it("uses the module's transform, and any name and type of the key", async () => {
        await create(ada, "pages", { slug: "über/uns", title: "about" });

        const { body } = await ada.request("GET", `/resources/pages/${encodeURIComponent("über/uns")}`);

        expect(body).to.deep.equal({ slug: "über/uns", heading: "ABOUT" });
      });
    });

    describe("4.6, POST /resources/{name}", () => {
      it("answers 201 with the record, owned by the caller, of validated fields only", async () => {
        const body = { text: "x", user_id: admin.id, kind_id: 5, unknown: 1 };
        const answer = await ada.request("POST", "/resources/kinds", body);

        expect(answer.status).to.equal(201);
        expect(answer.body).to.include({ text: "x", user_id: ada.id, is_done: false });
        expect(answer.body.kind_id).to.not.equal(5);
        expect((await ada.request("GET", `/resources/kinds/${answer.body.kind_id}`)).body).to.deep.equal(
          answer.body,
        );
      });

      it("validates by createRules, and reports every fault by field", async () => {
        const { reference } = await order(ada);
        const body = { reference, amount: "-1", notes: "x".repeat(21), customer_id: 999_999 };
        const answer = await ada.request("POST", "/resources/orders", body);

        expect(answer.status).to.equal(422);
        expect(answer.body).to.deep.equal({
          message: "The reference has already been taken. (and 3 more errors)",
          code: "validation.failed",
          errors: {
            reference: ["The reference has already been taken."],
            amount: ["The amount field must be at least 0."],
            notes: ["The notes field must not be greater than 20 characters."],
            customer_id: ["The selected customer id is invalid."],
          },
        });
        const one = await ada.request("POST", "/resources/orders", { amount: 1 });
        expect(one.body.message).to.equal("The reference field is required.");
        const two = await ada.request("POST", "/resources/orders", {});
        expect(two.body.message).to.equal("The reference field is required. (and 1 more error)");
      });
    });

    describe("4.7, PUT /resources/{name}/{id}", () => {
      it("changes the fields that are sent and leaves the rest", async () => {
        const before = await order(ada, { notes: "kept" });

        const answer = await ada.request("PUT", `/resources/orders/${before.id}`, { status: "paid" });

        expect(answer.status).to.equal(200);
        expect(answer.body).to.deep.equal({ ...before, status: "paid", updated_at: answer.body.updated_at });
        expect((await ada.request("GET", `/resources/orders/${before.id}`)).body).to.deep.equal(answer.body);
      });

      it("validates by updateRules and not by createRules", async () => {
        const { id, reference } = await order(ada);
        const wrong = await ada.request("PUT", `/resources/orders/${id}`, { status: "lost", amount: null });
        const unruled = await ada.request("PUT", `/resources/orders/${id}`, { reference: "new" });

        expect(wrong.body.errors).to.deep.equal({
          status: ["The selected status is invalid."],
          amount: ["The amount field is required."],
        });
        expect([unruled.status, unruled.body.reference]).to.deep.equal([200, reference]);
      });

      it("answers 200 with the record when nothing changes", async () => {
        const before = await order(ada);

        for (const body of [undefined, {}, { unknown: 1 }]) {
          const answer = await ada.request("PUT", `/resources/orders/${before.id}`, body);
          expect([answer.status, answer.body]).to.deep.equal([200, before]);
        }
      });
    });

    describe("4.8, DELETE /resources/{name}/{id}", () => {
      it("answers 204 with an empty body, and the record is gone", async () => {
        const { id } = await order(ada);
        const answer = await ada.request("DELETE", `/resources/orders/${id}`);

        expect([answer.status, answer.body]).to.deep.equal([204, undefined]);
        expect((await ada.request("GET", `/resources/orders/${id}`)).status).to.equal(404);
        expect((await ada.request("DELETE", `/resources/orders/${id}`)).status).to.equal(404);
      });

      it("answers 409 while other records refer to it", async () => {
        const customer = await create(ada, "customers", { name: "Acme" });
        await order(ada, { customer_id: customer.id });

        const answer = await admin.request("DELETE", `/resources/customers/${customer.id}`);

        expect(answer.status).to.equal(409);
        expect(answer.body).to.deep.equal({
          message: "The record cannot be deleted: other records refer to it.",
          code: "record.referenced",
        });
      });
    });

    describe("5 and 7, errors", () => {
      for (const [status, code, method, path, message] of [
        [401, "token.missing", "GET", "/whoami", "Unauthenticated."],
        [404, "resource.not_found", "GET", "/resources/nothing", "The resource nothing could not be found."],
        [
          404,
          "record.not_found",
          "GET",
          "/resources/orders/999999",
          "The orders record 999999 could not be found.",
        ],
        [
          405,
          "operation.unsupported",
          "POST",
          "/resources/logs",
          "The POST method is not supported for route svc-api/resources/logs. Supported methods: GET, HEAD.",
        ],
        [
          405,
          "operation.unsupported",
          "PUT",
          "/resources/customers/1",
          "The PUT method is not supported for route svc-api/resources/customers/1. Supported methods: GET, HEAD, DELETE.",
        ],
        [
          405,
          "operation.unsupported",
          "DELETE",
          "/resources/logs/1",
          "The DELETE method is not supported for route svc-api/resources/logs/1. Supported methods: GET, HEAD.",
        ],
      ] as const) {
        it(`${status} of ${method} ${path} is a message, with the headers that go with it`, async () => {
          const token = status === 401 ? undefined : ada.token;
          const answer = await request({
            url: service.baseUrl + path,
            method,
            token,
            body: method === "GET" ? undefined : {},
          });

          expect([answer.status, answer.body]).to.deep.equal([status, { message, code }]);
          expect(answer.headers.get("content-type")).to.equal("application/json; charset=utf-8");
          expect(answer.headers.get("allow")).to.equal(
            status === 405 ? message.split("methods: ")[1]?.slice(0, -1) : null,
          );
          const challenge = answer.headers.get("www-authenticate");
          if (status === 401)
            expect(challenge)
              .to.match(/^Bearer\b/)
              .and.not.match(/error/);
          else expect(challenge).to.equal(null);
        });
      }

      it("401 names an invalid token as such", async () => {
        const answer = await request({
          url: `${service.baseUrl}/whoami`,
          method: "GET",
          token: `${ada.token}x`,
        });

        expect([answer.status, answer.body]).to.deep.equal([
          401,
          { message: "Unauthenticated.", code: "token.invalid" },
        ]);
        expect(answer.headers.get("www-authenticate")).to.match(/^Bearer\b.*\berror="invalid_token"/);
      });

      it("return the request's id, or a generated one", async () => {
        const headers = { Authorization: `Bearer ${ada.token}`, "X-Request-Id": "abc-1" };
        for (const path of ["/whoami", "/nothing"]) {
          expect(
            (await call(service.api.port, `/svc-api${path}`, { headers })).headers["x-request-id"],
          ).to.equal("abc-1");
          expect((await ada.request("GET", path)).headers.get("x-request-id")).to.match(uuid);
        }
      });
    });
  });
}
