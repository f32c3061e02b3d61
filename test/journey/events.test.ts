import { expect } from "chai";
import { Client } from "pg";
import { createTransact } from "../../src/db/sql.ts";
import { eraseRecord } from "../../src/deliveries/erase.ts";
import { testOperator } from "../support/actors.ts";
import { createNote, notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { openEventSource, type EventSource } from "../support/event-source.ts";
import { startReceiver } from "../support/receiver.ts";
import { modes, request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const teamYaml = `
name: reports
model: Report
fields:
  id: { type: Int, id: true }
  title: { type: String }
  reader_id: { type: Int }
triggers: [on_create, on_update, on_delete]
createRules: { title: required|string, reader_id: required|integer }
access:
  read: { reader_id: $user.id }
  update: everyone
  delete: everyone
`;

const nothing = { data: [], next_page_url: null, prev_cursor: null, prev_page_url: null };

const list = (user: TestUser, query = ""): Promise<Answer> => user.request("GET", `/events${query}`);

const texts = (source: EventSource): readonly unknown[] =>
  source.messages.map(({ data }) => (data as { text: string }).text);

for (const mode of modes) {
  describe(`GET /events (${mode})`, function () {
    this.timeout(60_000);
    const service = serviceOfSuite({
      mode,
      resources: { "notes.yaml": notesYaml, "reports.yaml": teamYaml },
      // As with 512 MB: a page then has 2 MB.
      http: { memoryBudgetBytes: 64 * 1024 ** 2 },
      // One attempt, however long the test reads it.
      webhooks: { backoffMs: [600_000] },
    });
    let ada: TestUser;
    let eve: TestUser;
    const sources: EventSource[] = [];

    before(async () => {
      ada = await service.createUser();
      eve = await service.createUser();
    });
    afterEach(() => {
      for (const source of sources.splice(0)) source.close();
    });

    let end = "0";
    /**
     * Returns the id of the last event of all users. Reads no event twice: one test makes some of
     * many MB.
     */
    async function last(): Promise<string> {
      const admin = await service.createUser({ isAdmin: true });
      for (;;) {
        const { body } = await list(admin, `?after=${end}&per_page=100`);
        end = body.next_cursor;
        if (body.next_page_url === null) return end;
      }
    }
    async function stream(user: TestUser, query = "", lastEventId?: string): Promise<EventSource> {
      const source = await openEventSource(`${service.baseUrl}/events/stream${query}`, {
        token: user.token,
        ...(lastEventId === undefined ? {} : { lastEventId }),
      });
      sources.push(source);
      return source;
    }
    it("lists the events that the caller may read, oldest first, with the record as it was", async () => {
      const after = await last();
      const note = await createNote(ada, "one");
      await ada.request("PUT", `/resources/notes/${note.id}`, { text: "two" });
      await ada.request("DELETE", `/resources/notes/${note.id}`);
      await createNote(eve, "hers");

      const { status, body } = await list(ada, `?after=${after}`);

      expect(status).to.equal(200);
      expect(body.data.map(({ event, data }: Answer["body"]) => [event, data.text])).to.deep.equal([
        ["on_create", "one"],
        ["on_update", "two"],
        ["on_delete", "two"],
      ]);
      const [first] = body.data;
      expect(first).to.have.all.keys("id", "uuid", "event", "resource", "record_id", "occurred_at", "data");
      expect(first).to.include({ resource: "notes", record_id: String(note.id) });
      expect(first.occurred_at).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      expect(body).to.include({ per_page: 15, prev_cursor: null, next_page_url: null });
      expect(Number(body.next_cursor)).to.be.above(body.data[2].id);
      expect((await list(ada, `?after=${body.next_cursor}`)).body).to.deep.include(nothing);
    });

    it("continues behind an event that is larger than a page, and behind one that exceeds any answer", async () => {
      const after = await last();
      const { pool } = service.infrastructure.database;
      for (const size of [1, 4_000_000, 18_000_000, 1])
        await pool.query("INSERT INTO notes (text, user_id) VALUES (repeat('a', $1), $2)", [size, ada.id]);

      const shown: unknown[] = [];
      let next: string | null = `?after=${after}`;
      while (next !== null) {
        const { status, body } = await list(ada, next);
        expect(status).to.equal(200);
        shown.push(...body.data.map(({ data, problem }: Answer["body"]) => data?.text.length ?? problem));
        next = body.next_page_url && new URL(body.next_page_url).search;
      }

      expect(shown).to.deep.equal([1, 4_000_000, "The record is larger than an answer may be.", 1]);
    });

    it("shows one by its UUID, and none of other users", async () => {
      const after = await last();
      await createNote(ada, "shown");
      const [event] = (await list(ada, `?after=${after}`)).body.data;

      expect((await ada.request("GET", `/events/${event.uuid}`)).body).to.deep.equal(event);
      for (const [user, uuid] of [
        [eve, event.uuid],
        [ada, `${event.uuid.slice(0, -1)}${event.uuid.endsWith("0") ? "1" : "0"}`],
        [ada, "1"],
        [ada, "00000000-0000-4000-8000-000000000000"],
      ] as const) {
        const { status, body } = await user.request("GET", `/events/${uuid}`);
        expect(status, uuid).to.equal(404);
        expect(body).to.deep.equal({ message: "The event could not be found.", code: "event.not_found" });
      }
    });

    it("shows that a record was erased, and sends no more of its data", async () => {
      const receiver = await startReceiver();
      try {
        receiver.answer = { status: 500, body: "hush" };
        const after = await last();
        const { id } = await subscribe(ada, receiver);
        const headers = { "Idempotency-Key": `erased-${mode}` };
        const post = (): Promise<Answer> =>
          request({
            url: `${service.baseUrl}/resources/notes`,
            method: "POST",
            token: ada.token,
            headers,
            body: { text: "hush" },
          });
        const { body: note } = await post();
        const retrying = await untilDelivery(ada, id, "retrying");
        expect(retrying.request.body).to.include("hush");

        const erased = await eraseRecord({
          transact: createTransact(service.infrastructure.database.pool),
          record: { resource: "notes", recordId: String(note.id) },
          actor: testOperator,
          onProgress: () => undefined,
        });

        const counts = { events: 1, payloads: 1, cancelled: 1, answers: 1, kept_answers: 1 };
        expect(erased).to.include(counts);
        const cancelled = await untilDelivery(ada, id, "cancelled");
        expect(cancelled).to.include({ id: retrying.id, last_error: "The record was erased." });
        expect(cancelled.request.body).to.equal(null);
        expect(cancelled.attempts[0]).to.include({ status_code: 500, response_body: null });
        const retried = await ada.request("POST", `/webhook-deliveries/${retrying.id}/retry`);
        expect(retried.body.message).to.equal("The record of this delivery was erased.");
        const [event] = (await list(ada, `?after=${after}&resource=notes`)).body.data;
        expect(event).to.include({ data: null, problem: "The record was erased." });
        const again = await post();
        expect([again.status, again.body.code]).to.deep.equal([404, "record.not_found"]);
      } finally {
        await receiver.close();
        await unsubscribeAll(ada);
      }
    });

    it("has the bytes of the deliveries, and is judged by the same rule", async () => {
      const receiver = await startReceiver();
      try {
        const after = await last();
        const { id } = await subscribe(ada, receiver, { resource: "reports" });
        await eve.request("POST", "/resources/reports", { title: "for ada", reader_id: ada.id });
        await eve.request("POST", "/resources/reports", { title: "for eve", reader_id: eve.id });
        const { event_uuid: uuid } = await untilDelivery(ada, id, "delivered");
        const [delivered] = await receiver.waitFor(1);

        const { body } = await list(ada, `?after=${after}&resource=reports`);

        expect(body.data.map((one: Answer["body"]) => [one.uuid, one.data.title])).to.deep.equal([
          [uuid, "for ada"],
        ]);
        expect(JSON.parse(delivered?.rawBody.toString() ?? "").data).to.deep.equal(body.data[0].data);
        expect((await list(eve, `?after=${after}&resource=reports`)).body.data).to.have.length(1);
      } finally {
        await receiver.close();
      }
    });

    it("filters by resource, event and record, and pages by cursor", async () => {
      const after = await last();
      const notes = [await createNote(ada, "a"), await createNote(ada, "b"), await createNote(ada, "c")];
      await ada.request("PUT", `/resources/notes/${notes[1].id}`, { text: "bb" });
      const seen = async (query: string): Promise<readonly unknown[]> =>
        (await list(ada, `?after=${after}&${query}`)).body.data.map(({ data }: Answer["body"]) => data.text);

      expect(await seen(`record_id=${notes[1].id}`)).to.deep.equal(["b", "bb"]);
      expect(await seen(`resource=notes&record_id=${notes[1].id}&event=on_update`)).to.deep.equal(["bb"]);
      expect(await seen("resource=reports")).to.deep.equal([]);
      const first = (await list(ada, `?after=${after}&per_page=2`)).body;
      expect(first.data.map(({ data }: Answer["body"]) => data.text)).to.deep.equal(["a", "b"]);
      expect(first.next_cursor).to.equal(String(first.data[1].id));
      const second = await request({ url: first.next_page_url, method: "GET", token: ada.token });
      expect(second.body.data.map(({ data }: Answer["body"]) => data.text)).to.deep.equal(["c", "bb"]);
      expect((await list(ada, `?after=${first.data[1].uuid}`)).body.data[0].data.text).to.equal("c");
    });

    it("refuses unknown parameters", async () => {
      for (const [query, field, message] of [
        ["resorce=notes", "resorce", "There is no parameter resorce; did you mean resource?"],
        ["limit=5", "limit", "There is no parameter limit; use per_page."],
        ["cursor=5", "cursor", "There is no parameter cursor; use after."],
        ["resource=note", "resource", "The selected resource is invalid; did you mean notes?"],
        [
          "event=created",
          "event",
          "The selected event is invalid; expected one of on_create, on_update, on_delete.",
        ],
        ["resource=notes&resource=notes", "resource", "The parameter was given twice."],
        [
          "__proto__=1",
          "__proto__",
          "There is no parameter __proto__; expected one of resource, event, record_id, after, before, per_page.",
        ],
        ["record_id=%e0", "record_id", "The percent-encoding is broken."],
        ["record_id=a%00b", "record_id", "The record id field must not contain NUL characters."],
        [
          `${"&".repeat(300)}resorce=notes`,
          "resorce",
          "There is no parameter resorce; did you mean resource?",
        ],
        ["after=-1", "after", "The after field must be the id or the UUID of an event."],
        ["before=-1", "before", "The before field must be the id or the UUID of an event."],
        ["before=&after=1", "before", "There is no before beside after."],
        [
          `record_id=${"1".repeat(5000)}`,
          "record_id",
          "The record id field must not be greater than 4096 characters.",
        ],
      ] as const) {
        const { status, body } = await list(ada, `?${query}`);
        expect(status, query).to.equal(422);
        expect(Object.entries(body.errors), query).to.deep.equal([[field, [message]]]);
      }
    });

    it("refuses a UUID of no event as cursor, such as a delivery's, and says which to send", async () => {
      await createNote(ada, "one");
      const uuid = "a0eebc99-9c0b-5ef8-bb6d-6bb9bd380a11";
      const advice =
        "must be the id or the UUID of an event, and no event is at this UUID. Send the id; of a webhook, send event_id, not delivery_id.";
      for (const [path, headers, field, what] of [
        [`/events?after=${uuid}`, {}, "after", "after field"],
        [`/events/stream?after=${uuid}`, {}, "after", "after field"],
        ["/events/stream", { "Last-Event-ID": uuid }, "Last-Event-ID", "Last-Event-ID header"],
      ] as const) {
        const url = service.baseUrl + path;
        const { status, body } = await request({ url, method: "GET", token: ada.token, headers });
        expect(status, path).to.equal(422);
        expect(body.errors, path).to.deep.equal({ [field]: [`The ${what} ${advice}`] });
      }
    });

    it("streams events as they happen, and continues behind the last one", async () => {
      const source = await stream(ada);
      expect([source.status, source.contentType]).to.deep.equal([200, "text/event-stream; charset=utf-8"]);
      await until(() => source.lastId() !== undefined, { what: "the stream to begin" });
      await createNote(ada, "first");
      await createNote(eve, "not hers");
      await until(() => source.messages.length === 1, { what: "the first event" });
      source.close();
      await createNote(ada, "missed");
      await createNote(ada, "second");

      const again = await stream(ada, "?resource=notes", source.lastId());

      await until(() => again.messages.length === 2, { what: "what was missed" });
      expect([...texts(source), ...texts(again)]).to.deep.equal(["first", "missed", "second"]);
      await createNote(ada, "third");
      await until(() => again.messages.length === 3, { what: "the third event" });
    });

    it("ends the stream of a token that is revoked", async () => {
      const source = await stream(ada);
      const token = await ada.request("POST", "/tokens", { name: "short" });
      const own = await openEventSource(`${service.baseUrl}/events/stream`, { token: token.body.token });
      sources.push(own);
      await until(() => own.lastId() !== undefined && source.lastId() !== undefined, {
        what: "both streams",
      });
      await ada.request("DELETE", `/tokens/${token.body.id}`);
      // A token is checked at most once a second.
      await until(
        async () => {
          await createNote(ada, "after");
          return own.isEnded();
        },
        { what: "the end of the stream" },
      );

      expect(source.isEnded()).to.equal(false);
      const count = own.messages.length;
      await until(() => source.messages.length > count, { what: "the other stream to go on" });
    });

    it("gives a user 10 streams", async () => {
      const opened = await Promise.all(Array.from({ length: 10 }, () => stream(eve)));
      expect(new Set(opened.map(({ status }) => status))).to.deep.equal(new Set([200]));

      const { status, headers } = await eve.request("GET", "/events/stream");

      expect([status, headers.get("retry-after")]).to.deep.equal([503, "10"]);
      expect((await stream(ada)).status).to.equal(200);
      opened[0]?.close();
      await until(async () => (await stream(eve)).status === 200, { what: "a place" });
    });

    it("requires the scope of each resource", async () => {
      const after = await last();
      await createNote(ada, "scoped");
      // A transaction of another test's database holds the newest events back until it ends.
      const isShown = async (): Promise<boolean> =>
        (await ada.request("GET", `/events?after=${after}`)).body.data.length === 1;
      await until(isShown, { what: "the event" });
      const use = async (scopes: readonly string[], query: string): Promise<Answer> => {
        const { body } = await ada.request("POST", "/tokens", { name: "narrow", scopes });
        return request({
          url: `${service.baseUrl}/events?after=${after}${query}`,
          method: "GET",
          token: body.token,
        });
      };

      expect((await use(["notes:read"], "")).body.data).to.have.length(1);
      expect((await use(["reports:read"], "")).body.data).to.have.length(0);
      expect((await use(["reports:read"], "&resource=notes")).body.code).to.equal("token.scope");
      expect((await use(["webhooks"], "")).body.code).to.equal("token.scope");
    });

    if (mode === "servers")
      it("skips no event of a transaction that commits late, by list and by stream", async () => {
        const after = await last();
        const source = await stream(ada);
        await until(() => source.lastId() !== undefined, { what: "the stream to begin" });
        const late = new Client({ connectionString: service.config.database.url ?? "" });
        await late.connect();
        try {
          await late.query("BEGIN");
          await late.query("INSERT INTO notes (text, user_id) VALUES ('late', $1)", [ada.id]);
          await createNote(ada, "early");
          const page = (await list(ada, `?after=${after}`)).body;
          expect(page).to.deep.include({ ...nothing, next_cursor: after });
          await late.query("COMMIT");
        } finally {
          await late.end();
        }

        await until(() => source.messages.length === 2, { what: "both events" });
        expect(texts(source)).to.deep.equal(["late", "early"]);
        const both = (await list(ada, `?after=${after}`)).body.data;
        expect(both.map(({ data }: Answer["body"]) => data.text)).to.deep.equal(["late", "early"]);
      });
  });
}
