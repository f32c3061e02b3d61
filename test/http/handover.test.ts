import { once } from "node:events";
import { Agent, request as send, type IncomingMessage, type ServerResponse } from "node:http";
import { expect } from "chai";
import { createHandover, type Handover } from "../../src/http/handover.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { call } from "../support/http.ts";
import { until } from "../support/wait.ts";

describe("createHandover", () => {
  let handover: Handover;
  let server: HttpServer;
  /** Requests that wait for their answer. */
  let held: ServerResponse[];

  beforeEach(async () => {
    held = [];
    handover = createHandover();
    server = await startServer(handover.listener, { host: "127.0.0.1", port: 0 });
  });

  afterEach(() => server.close({ limitMs: 100 }));

  const hold = (_request: IncomingMessage, response: ServerResponse): void => void held.push(response);
  it("answers 503 until a listener is there", async () => {
    expect((await call(server.port, "/")).status).to.equal(503);
  });

  it("passes every request to the listener set last", async () => {
    await handover.pass(answering("one"));
    const one = await call(server.port, "/");
    await handover.pass(answering("two"));
    const two = await call(server.port, "/");

    expect([one.text, two.text]).to.deep.equal(["one", "two"]);
  });

  it("lets a request end in the listener that began it, and resolves then", async () => {
    await handover.pass(hold);
    const old = call(server.port, "/");
    await until(() => held.length === 1, { what: "the request" });
    let isDone = false;

    const done = handover.pass(answering("new")).then(() => (isDone = true));

    expect((await call(server.port, "/")).text).to.equal("new");
    expect([isDone, handover.inFlight()]).to.deep.equal([false, 1]);
    held[0]?.end("old");
    expect((await old).text).to.equal("old");
    await done;
    expect(handover.inFlight()).to.equal(0);
  });

  it("counts a request as done when its client goes away", async () => {
    await handover.pass(hold);
    const asked = send({ host: "127.0.0.1", port: server.port }).on("error", () => undefined);
    asked.end();
    await until(() => held.length === 1, { what: "the request" });

    const done = handover.pass(answering("new"));
    asked.destroy();

    await done;
  });

  it("asks clients to leave while it drains, those with open requests too", async () => {
    await handover.pass(hold);
    const agent = new Agent({ keepAlive: true });
    const early = send({ host: "127.0.0.1", port: server.port, agent }).end();
    await until(() => held.length === 1, { what: "the request" });

    handover.drain();

    const late = send({ host: "127.0.0.1", port: server.port, agent }).end();
    await until(() => held.length === 2, { what: "the second request" });
    for (const response of held) response.end("done");
    for (const asked of [early, late]) {
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      await answer.toArray();
      expect(answer.headers.connection).to.equal("close");
    }
    agent.destroy();
  });
});

function answering(text: string): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => void response.end(text);
}
