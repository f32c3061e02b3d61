import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { expect } from "chai";
import { createAgents, type Agents } from "../../src/outbound/connections.ts";
import { createSharedLookup } from "../../src/outbound/shared-lookup.ts";
import { TargetRefusedError } from "../../src/outbound/outbound-errors.ts";
import { createTargetPolicy } from "../../src/outbound/targets.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";

describe("createAgents", () => {
  let receiver: TestReceiver;
  let agents: Agents;

  beforeEach(async () => {
    receiver = await startReceiver();
    agents = createAgents({
      policy: createTargetPolicy([]),
      keepAlive: true,
      maxSockets: 1,
      lookup: createSharedLookup(),
    });
  });
  afterEach(async () => {
    agents.http.destroy();
    agents.https.destroy();
    await receiver.close();
  });

  for (const [scheme, request] of [["http", httpRequest] as const, ["https", httpsRequest] as const]) {
    for (const autoSelectFamily of [true, false]) {
      it(`connects to no refused address of a name over ${scheme}, asked for ${autoSelectFamily ? "all" : "one"}`, async () => {
        const agent = agents[scheme];
        setFamilies(agent, autoSelectFamily);

        const sent = request({ host: "localhost", port: receiver.port, agent });
        const [error] = (await once(sent, "error")) as [unknown];

        expect(error).to.be.instanceOf(TargetRefusedError);
        expect((error as Error).message).to.equal(
          "localhost resolves to a loopback address, which is outside the allowed networks.",
        );
        expect(receiver.connectionCount()).to.equal(0);
      });
    }
  }

  for (const autoSelectFamily of [true, false]) {
    it(`connects to the allowed address of a name, asked for ${autoSelectFamily ? "all" : "one"}`, async () => {
      const policy = createTargetPolicy(["127.0.0.0/8"]);
      const { http: agent } = createAgents({
        policy,
        keepAlive: false,
        maxSockets: 1,
        lookup: createSharedLookup(),
      });
      setFamilies(agent, autoSelectFamily);

      const sent = httpRequest({ host: "localhost", port: receiver.port, agent }).end();
      await once(sent, "response");

      expect(sent.socket?.remoteAddress).to.equal("127.0.0.1");
    });
  }
});

/** Sets the option of an agent, which Node's types hide. */
function setFamilies(agent: Agents["http"] | Agents["https"], autoSelectFamily: boolean): void {
  Object.assign((agent as unknown as { readonly options: object }).options, { autoSelectFamily });
}
