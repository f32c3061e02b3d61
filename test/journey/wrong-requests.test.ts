import { expect } from "chai";
import { connect } from "node:net";
import type { Answer } from "../support/http.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { badWebhooks } from "./bad-webhooks.ts";
import { fuzzedRequests } from "./fuzz.ts";
import { expectRefusal, sendAs, things, type Send } from "./things.ts";

const seed = 20_260_328;

/** List parameters that are ignored: the answer is the first page. */
const junkPages = [
  "",
  "0",
  "-1",
  "1.5",
  "abc",
  "1e3",
  "0x10",
  "+1",
  "%201",
  "1%00",
  "%00",
  "null",
  "NaN",
  "Infinity",
  "%EF%BC%91",
];

/** Sends invalid HTTP, and returns the first line of the answer. */
function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(text));
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(received.split("\r\n", 1)[0] ?? ""));
  });
}

const titlesOf = ({ json }: Answer): readonly unknown[] =>
  (json as { data: { title: string }[] }).data.map(({ title }) => title);

for (const mode of modes) {
  describe(`wrong requests (${mode})`, () => {
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;
    let webhookId: number;
    let thingId: number;
    let deliveryId: number;
    let send: Send;
    /** For answers of the code in front of the database, which is the same for both. */
    const describeOnce = mode === "servers" ? describe : (): void => undefined;

    before(async () => {
      service = await startService({
        mode,
        resources: { "things.yaml": things },
        webhooks: { maxAttempts: 1, manualRetryLimit: 0 },
      });
      receiver = await startReceiver();
      receiver.answer = { status: 500 };
      ada = await service.createUser();
      send = sendAs(service, ada);
      const hook = { url: `${receiver.url}/hook`, resource: "things", events: ["on_delete"] };
      webhookId = (await ada.request("POST", "/webhooks", hook)).body.id;
      for (const title of ["gone", "100% sure", "back\\slash", 'it\'s "quoted"', "under_score", "plain"])
        thingId = (await ada.request("POST", "/resources/things", { title })).body.id;
      const [gone] = (await ada.request("GET", "/resources/things?search=gone")).body.data;
      await ada.request("DELETE", `/resources/things/${gone.id}`);
      deliveryId = await until(
        async () =>
          (await ada.request("GET", "/webhook-deliveries?status=failed")).body.data[0]?.id as number,
        { what: "a failed delivery" },
      );
    });
    after(async () => {
      await receiver.close();
      await service.stop();
    });

    afterEach("the service still answers", async () => {
      expect((await ada.request("GET", "/whoami")).body.id).to.equal(ada.id);
    });

    describeOnce("webhooks", () => {
      for (const [change, field] of badWebhooks) {
        const shown = JSON.stringify(change) === "{}" ? `no ${field}` : JSON.stringify(change).slice(0, 80);

        it(`are refused on ${field} for ${shown}`, async () => {
          const before = (await ada.request("GET", "/webhooks")).body.data.length;
          const valid = { url: "https://example.com/hook", resource: "things", events: ["on_create"] };
          const answers = [
            await send("POST", "/webhooks", { body: JSON.stringify({ ...valid, ...change }) }),
          ];
          // Fields that a change leaves out keep their values.
          if (Object.values(change)[0] !== undefined)
            answers.push(await send("PUT", `/webhooks/${webhookId}`, { body: JSON.stringify(change) }));

          for (const answer of answers) {
            expectRefusal(answer, 422);
            expect((answer.json as { errors: object }).errors).to.have.property(field);
          }
          expect((await ada.request("GET", "/webhooks")).body.data).to.have.length(before);
        });
      }
    });

    describe("lists", () => {
      for (const value of junkPages) {
        it(`treat page=${value} as 1 and per_page=${value} as 15`, async () => {
          for (const path of ["/resources/things", "/webhook-deliveries"]) {
            const answer = await send("GET", `${path}?page=${value}&per_page=${value}`);
            expect(answer.status, answer.text).to.equal(200);
            expect(answer.json).to.include({ current_page: 1, per_page: 15 });
          }
        });
      }

      for (const value of ["2147483648", "9223372036854775808", "9".repeat(400)]) {
        it(`answer an empty page to page=${value.slice(0, 30)} and lower such a per_page`, async () => {
          for (const path of ["/resources/things", "/webhook-deliveries"]) {
            const page = await send("GET", `${path}?page=${value}`);
            const size = await send("GET", `${path}?per_page=${value}`);
            expect([page.status, size.status]).to.deep.equal([200, 200]);
            expect(page.json).to.deep.include({ data: [], next_page_url: null });
            expect(size.json).to.include({ per_page: 100 });
          }
        });
      }

      for (const [term, titles] of [
        ["%25", ["100% sure"]],
        ["_", ["under_score"]],
        ["%5C", ["back\\slash"]],
        ["'", ['it\'s "quoted"']],
        ["%22", ['it\'s "quoted"']],
        ["%00", []],
        ["sure%00", []],
        ["%zz", []],
        ["';DROP TABLE things;--", []],
        ["x".repeat(100), []],
        ["%25".repeat(100), []],
        ["%5C".repeat(99), []],
        ["*", []],
        ["..%2F", []],
      ] as const) {
        it(`find ${JSON.stringify(titles)} by ?search=${term.slice(0, 40)}`, async () => {
          const answer = await send("GET", `/resources/things?search=${term.replaceAll(" ", "%20")}`);

          expect(answer.status, answer.text).to.equal(200);
          expect(titlesOf(answer)).to.deep.equal(titles);
        });
      }

      for (const term of ["%F0%9F", "%ED%A0%80", "%FF", "50%%C0%80"]) {
        it(`refuse ?search=${term}, which is no UTF-8`, async () => {
          const answer = await send("GET", `/resources/things?search=${term}`);

          expectRefusal(answer, 422);
          expect(answer.json).to.deep.include({ errors: { search: ["The percent-encoding is broken."] } });
        });
      }

      for (const query of [
        "unknown=1&pages[]=2&per_pages[x]=1",
        "__proto__=1&constructor=2&__proto__[page]=2",
        "&&&===&",
        `x=${"y".repeat(8_000)}`,
        Array.from({ length: 1_500 }, (_, index) => `k${index}=1`).join("&"),
      ]) {
        it(`refuse ?${query.slice(0, 50)}, and what is not a list ignores it`, async () => {
          for (const path of ["/resources/things", "/webhook-deliveries", "/webhooks"])
            expectRefusal(await send("GET", `${path}?${query}`), 422);
          for (const path of ["/whoami", "/resources"])
            expect((await send("GET", `${path}?${query}`)).status).to.equal(200);
        });
      }

      it("ignore a page without a number", async () => {
        for (const path of ["/resources/things", "/webhook-deliveries", "/webhooks"])
          expect((await send("GET", `${path}?page`)).json).to.include({ current_page: 1 });
      });

      for (const query of [
        "webhook_id=x",
        "webhook_id=",
        "webhook_id=0",
        "webhook_id=1.5",
        "webhook_id=2147483648",
        "webhook_id=%00",
        "event_id=x",
        "event_id=-1",
        "event_id=9223372036854775808",
        `event_id=${"1".repeat(500)}`,
        "status=lost",
        "status=",
        "status=FAILED",
        "status=%00",
        "status=__proto__",
        "status=failed&status=lost",
      ]) {
        it(`refuse ?${query.slice(0, 50)} of deliveries`, async () => {
          expectRefusal(await send("GET", `/webhook-deliveries?${query}`), 422);
        });
      }
    });

    describeOnce("methods and paths", () => {
      for (const [path, allow] of [
        ["/whoami", ["GET", "HEAD"]],
        ["/resources", ["GET", "HEAD"]],
        ["/resources/things", ["GET", "HEAD", "POST"]],
        ["/resources/things/{thing}", ["DELETE", "GET", "HEAD", "PATCH", "PUT"]],
        ["/resources/things/batch", ["POST"]],
        ["/webhooks", ["GET", "HEAD", "POST"]],
        ["/webhooks/{webhook}", ["DELETE", "GET", "HEAD", "PATCH", "PUT"]],
        ["/webhook-deliveries", ["GET", "HEAD"]],
        ["/webhook-deliveries/{delivery}", ["GET", "HEAD"]],
        ["/webhook-deliveries/{delivery}/retry", ["POST"]],
      ] as const) {
        it(`of ${path} are ${allow.join(", ")} and no other`, async () => {
          const real = path
            .replace("{thing}", String(thingId))
            .replace("{webhook}", String(webhookId))
            .replace("{delivery}", String(deliveryId));
          const methods = [
            "PATCH",
            "POST",
            "PUT",
            "DELETE",
            "GET",
            "TRACE",
            "PROPFIND",
            "PURGE",
            "LOCK",
            "REPORT",
          ];
          for (const method of methods.filter((each) => !allow.some((allowed) => allowed === each))) {
            const answer = await send(method, real);
            expectRefusal(answer, 405);
            expect(answer.headers["allow"]?.split(", ").toSorted(), method).to.deep.equal(allow);
          }
          const options = await send("OPTIONS", real);
          expect([options.status, options.text]).to.deep.equal([204, ""]);
          expect(options.headers["allow"]?.split(", ").toSorted()).to.deep.equal(allow);
        });
      }

      for (const path of [
        "/nothing",
        "/WHOAMI",
        "/Resources/things",
        "/resources/Things",
        "/resources/things%20",
        "/resources/%00",
        "/resources/%",
        "/resources/%E0%A4%A",
        "/resources//1",
        "/resources/things/1/2",
        "/resources/../whoami",
        "/resources/..%2fwhoami",
        "/resources/__proto__",
        "/resources/constructor/1",
        "/webhooks/1/2",
        "/webhook-deliveries/1/retry/2",
        `/resources/${"x".repeat(4_000)}`,
        "/%2e%2e/",
        "/.git/config",
      ]) {
        it(`are not found at ${path.slice(0, 50)}`, async () => {
          expectRefusal(await send("GET", path), 404);
        });
      }

      it("refuse a retry above the limit, and one with a body that is no JSON", async () => {
        expectRefusal(await send("POST", `/webhook-deliveries/${deliveryId}/retry`), 422);
        expectRefusal(
          await send("POST", `/webhook-deliveries/${deliveryId}/retry`, { body: "{broken" }),
          400,
        );
      });
    });

    describeOnce("headers", () => {
      const anyHeaders = {
        "X-Request-Id": "\u00e9".repeat(10),
        Host: "a b",
        "X-Forwarded-For": "x",
        Expect: "100-continue",
      };

      it("without meaning are ignored", async () => {
        const answer = await send("GET", "/resources/things?per_page=1", { headers: anyHeaders });

        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers["x-request-id"]).to.match(/^[0-9a-f-]{36}$/);
        const { next_page_url } = answer.json as { next_page_url: string };
        expect(new URL(next_page_url).hostname).to.be.oneOf(["localhost", "127.0.0.1"]);
      });

      for (const [what, authorization] of [
        ["nothing", ""],
        ["no scheme", "TOKEN"],
        ["another scheme", "Basic YWRhOnNlY3JldA=="],
        ["no token", "Bearer"],
        ["a blank token", "Bearer  "],
        ["two tokens", "Bearer TOKEN TOKEN"],
        ["a comma", "Bearer TOKEN, Bearer TOKEN"],
        ["a cut token", "Bearer TOKE"],
        ["a longer token", "Bearer TOKENx"],
        ["a token in another case", "Bearer LOWER"],
        ["a very long token", `Bearer svc_${"x".repeat(8_000)}`],
        ["SQL", "Bearer ' OR 1=1 --"],
      ] as const) {
        it(`with ${what} as authorization get 401`, async () => {
          const value = authorization
            .replaceAll("TOKEN", ada.token)
            .replace("TOKE", ada.token.slice(0, -1))
            .replace("LOWER", ada.token.toUpperCase());
          expectRefusal(await send("GET", "/whoami", { headers: { Authorization: value } }), 401);
        });
      }

      for (const [what, request, status] of [
        [
          "larger than 16 KiB",
          `GET /svc-api/whoami HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
          431,
        ],
        ["that are no HTTP", "hello\r\n\r\n", 400],
        ["without a host", "GET /svc-api/whoami HTTP/1.1\r\n\r\n", 400],
        ["with a space in a name", "GET /svc-api/whoami HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", 400],
        [
          "with two lengths",
          "POST /svc-api/webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
          400,
        ],
        [
          "with a length and chunks",
          "POST /svc-api/webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          400,
        ],
        [
          "with a negative length",
          "POST /svc-api/webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
          400,
        ],
        [
          "with a target on another host",
          "GET http://a:b/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
          404,
        ],
      ] as const) {
        it(`${what} get ${status}`, async () => {
          expect(await sendRaw(service.api.port, request)).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
        });
      }
    });

    // Last, since it changes and deletes the records of the others.
    describe("any requests", () => {
      it(`are never answered with 5xx (seed ${seed})`, async () => {
        const ids = { thing: thingId, webhook: webhookId, delivery: deliveryId };
        const requests = fuzzedRequests({ seed, count: 400, ids });
        for (const [index, { method, path, body }] of requests.entries()) {
          const answer = await send(method, path, body === undefined ? {} : { body });
          const what = `seed ${seed}, request ${index}: ${method} ${path} ${body ?? ""} gave ${answer.text}`;
          expect(answer.status, what).to.be.lessThan(500);
          if (answer.status >= 400) expectRefusal(answer, answer.status);
        }
      });
    });
  });
}
