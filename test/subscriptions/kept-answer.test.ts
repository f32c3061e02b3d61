import { expect } from "chai";
import { send } from "../../src/http/answer.ts";
import { createApp } from "../../src/http/app.ts";
import { startServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { addSubscriptionRoutes, type SubscriptionRoutesOptions } from "../../src/subscriptions/routes.ts";
import { asAda, call, createMemoryLog } from "../support/http.ts";

describe("POST /webhooks that is repeated", () => {
  it("gets its kept answer although the rules would now refuse the body", async () => {
    const router = createRouter("");
    const options: Partial<SubscriptionRoutesOptions> = {
      rulesFor: () => ({
        triggersOf: () => undefined,
        resourceNames: [],
        refusalOfUrl: () => "The url is not allowed any more.",
        refusalOfResource: () => undefined,
        filterFaults: () => new Map(),
      }),
      answerPost: async (ctx) => send(ctx, { status: 201, headers: {}, json: '{"id":1}' }),
    };
    addSubscriptionRoutes(router, options as SubscriptionRoutesOptions);
    const { log } = createMemoryLog();
    const app = createApp({ log, routePrefix: "", authenticate: asAda, router, isUnavailable: () => false });
    const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const body = JSON.stringify({ url: "https://example.com", resource: "orders", events: ["on_create"] });
    try {
      const answer = await call(server.port, "/webhooks", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
      });

      expect([answer.status, answer.json]).to.deep.equal([201, { id: 1 }]);
    } finally {
      await server.close();
    }
  });
});
