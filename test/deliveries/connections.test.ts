import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { expect } from "chai";
import { createAgents, type Agents } from "../../src/deliveries/connections.ts";
import { TargetRefusedError } from "../../src/deliveries/failure.ts";
import { createTargetPolicy } from "../../src/deliveries/targets.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";

describe("createAgents", () => {
  let receiver: TestReceiver;
  let agents: Agents;

  beforeEach(async () => {
    receiver = await startReceiver();
    agents = createAgents({ policy: createTargetPolicy([]), keepAlive: true, maxSockets: 1 });
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
        // Node's types keep the options of an agent to themselves.
        Object.assign((agent as unknown as { readonly options: object }).options, { autoSelectFamily });

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
});
