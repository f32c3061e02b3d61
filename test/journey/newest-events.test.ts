import { expect } from "chai";
import { createNote, notesYaml } from "../support/notes.ts";
import { modes, request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const list = (user: TestUser, query = ""): Promise<Answer> => user.request("GET", `/events${query}`);

const textsOf = ({ data }: Answer["body"]): readonly unknown[] =>
  data.map((one: Answer["body"]) => one.data.text);

const preview = (user: TestUser, body: unknown): Promise<Answer> =>
  user.request("POST", "/webhooks/preview", body);

/**
 * Waits for an event: a transaction of another database, too, holds back the newest events until it
 * ends.
 */
async function untilShown(user: TestUser, text: string, count = 1): Promise<void> {
  await until(
    async () =>
      textsOf((await list(user, "?before=&per_page=100")).body).filter((one) => one === text).length >= count,
    { what: `${count} events of ${text}`, timeoutMs: 50_000 },
  );
}

for (const mode of modes) {
  describe(`GET /events?before= and POST /webhooks/preview (${mode})`, function () {
    this.timeout(60_000);
    const service = serviceOfSuite({ mode, resources: { "notes.yaml": notesYaml } });
    let ada: TestUser;
    let eve: TestUser;

    before(async () => {
      ada = await service.createUser();
      eve = await service.createUser();
    });

    it("lists the newest first, page by page, to where it began", async () => {
      for (const text of ["a", "b", "c"]) await createNote(ada, text);
      await createNote(eve, "hers");
      const { body: first } = await list(ada, "?before=&per_page=2");
      expect(textsOf(first)).to.deep.equal(["c", "b"]);
      expect(first.next_cursor).to.equal(String(first.data[1].id));
      const second = await request({ url: first.next_page_url, method: "GET", token: ada.token });
      expect(textsOf(second.body)[0]).to.equal("a");
      expect(textsOf((await list(ada, `?before=${first.data[1].uuid}&per_page=1`)).body)).to.deep.equal([
        "a",
      ]);
      const [newest] = first.data;
      expect(
        textsOf((await list(ada, `?before=${newest.id}&record_id=${newest.record_id}`)).body),
      ).to.deep.equal([]);
      expect(textsOf((await list(ada, `?before=&record_id=${newest.record_id}`)).body)).to.deep.equal(["c"]);

      const seen: number[] = [];
      for (let next = ""; ;) {
        const { body } = await list(ada, `?before=${next}&per_page=3`);
        seen.push(...body.data.map(({ id }: Answer["body"]) => id));
        if (body.next_cursor === null) break;
        next = body.next_cursor;
      }
      expect(seen).to.deep.equal(seen.toSorted((one, other) => other - one));
      expect(seen).to.have.length(3);
      const forward: number[] = [];
      for (let next = "0"; ;) {
        const { body } = await list(ada, `?after=${next}&per_page=100`);
        forward.push(...body.data.map(({ id }: Answer["body"]) => id));
        if (body.next_page_url === null) break;
        next = body.next_cursor;
      }
      expect(seen.toReversed()).to.deep.equal(forward);
    });

    it("skips thousands of events of other users, newest first too", async () => {
      await createNote(ada, "before them");
      await service.infrastructure.sql(
        "INSERT INTO notes (text, user_id) SELECT 'hers', $1::int FROM generate_series(1, 6000)",
        [eve.id],
      );
      await untilShown(eve, "hers", 2);
      const found: unknown[] = [];
      let pages = 0;
      for (let next = ""; found.length === 0; pages += 1) {
        const { body } = await list(ada, `?before=${next}&per_page=1`);
        found.push(...body.data.map(({ data }: Answer["body"]) => data.text));
        next = body.next_cursor;
      }
      expect(found).to.deep.equal(["before them"]);
      expect(pages).to.equal(2);
    });

    it("tries a filter on the last events of the kind that the caller may read", async () => {
      await createNote(ada, "plain");
      const note = await createNote(ada, "urgent: call");
      await ada.request("PUT", `/resources/notes/${note.id}`, { text: "urgent: called" });
      await createNote(eve, "urgent, and hers");
      await untilShown(eve, "urgent, and hers");
      const asked = { resource: "notes", events: ["on_create"], filter: { text: { starts_with: "urgent" } } };

      const { status, body } = await preview(ada, asked);

      expect(status).to.equal(200);
      const tried = body.data.map((one: Answer["body"]) => [one.passes, one.event, one.data.text]);
      expect(tried.slice(0, 2)).to.deep.equal([
        [true, "on_create", "urgent: call"],
        [false, "on_create", "plain"],
      ]);
      const all = (await preview(ada, { ...asked, resource: "*", filter: null })).body.data;
      expect(all.every(({ passes }: Answer["body"]) => passes)).to.equal(true);
      expect((await preview(eve, asked)).body.data[0].data.text).to.equal("urgent, and hers");
      const wrong = await preview(ada, { ...asked, filter: { text: { gte: "a" }, txt: "b" } });
      expect(wrong.status).to.equal(422);
      expect(wrong.body.errors).to.have.all.keys("filter.text.gte", "filter.txt");
      expect((await preview(ada, { ...asked, url: "https://example.com" })).status).to.equal(422);
      const admin = await service.createUser({ isAdmin: true });
      const operational = { resource: "service", events: ["delivery.failed"] };
      expect((await preview(admin, operational)).body).to.deep.equal({ data: [] });
      const narrow = await service.api.tokens.issue({ userId: ada.id, name: "n", scopes: ["webhooks"] });
      const url = `${service.baseUrl}/webhooks/preview`;
      for (const resource of ["notes", "*"]) {
        const wider = { ...asked, resource };
        const refused = await request({ url, method: "POST", token: narrow.token, body: wider });
        expect([refused.status, refused.body.code]).to.deep.equal([403, "token.scope"]);
      }
    });
  });
}
