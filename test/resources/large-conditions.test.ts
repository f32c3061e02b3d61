import { expect } from "chai";
import { createUserTurns } from "../../src/http/user-turns.ts";
import { pause } from "../../src/kit/worker.ts";
import { apiOfSuite, ask } from "./serving-api.ts";

const never = new AbortController().signal;

/** One request of a user runs at one time; a record of 1.5 MB holds its slot for 0.7 s. */
describe("requests that only need the entity tag of a large record", () => {
  const { served, api } = apiOfSuite(undefined, { userTurns: createUserTurns({ atWork: 1 })(10) });
  let etag: string;

  before(async () => {
    await served.sql(
      "INSERT INTO orders (id, reference, amount, remarks, user_id) VALUES (1, 'L-1', 0, repeat('a', 1500000), 7)",
    );
    etag = (await ask(api, "ada", "GET /orders/1")).headers["etag"] ?? "";
  });

  for (const [request, headers, status] of [
    ["GET /orders/1", () => ({ "If-None-Match": etag }), 304],
    ["PATCH /orders/1", () => ({ "If-Match": '"another"' }), 412],
    ["DELETE /orders/1", () => ({ "If-Match": '"another"' }), 412],
  ] as const)
    it(`hold the slot of their user for a while: ${request}, ${status}`, async () => {
      await ask(api, "bob", "GET /orders");
      const body = request.startsWith("PATCH") ? {} : undefined;
      const answer = await ask(api, "ada", request, body, headers());
      expect(answer.status).to.equal(status);

      const waiting = ask(api, "ada", "GET /orders?fields=id");
      await ask(api, "bob", "GET /orders");
      const isHeld = await Promise.race([waiting.then(() => false), pause(200, never).then(() => true)]);

      expect(isHeld).to.equal(true);
      expect((await waiting).status).to.equal(200);
    });
});
