import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { createServer as createHttpsServer, request as httpsRequest } from "node:https";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import { createAgents, type Agents } from "../../src/outbound/connections.ts";
import { createSharedLookup } from "../../src/outbound/shared-lookup.ts";
import { TargetRefusedError } from "../../src/outbound/outbound-errors.ts";
import { createTargetPolicy } from "../../src/outbound/targets.ts";
import { codeOf } from "../../src/kit/errors.ts";
import { selfSigned } from "../support/self-signed.ts";
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

/** TLS_DHE_* with RSA and DSS, as IANA has them. */
const dheSuites = new Set([
  0x32, 0x33, 0x38, 0x39, 0x40, 0x45, 0x67, 0x6a, 0x6b, 0x88, 0x9e, 0x9f, 0xa2, 0xa3, 0xbe, 0xc4, 0xc052,
  0xc053, 0xc07c, 0xc07d, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3, 0xccaa,
]);

/** The cipher suites and the groups of a ClientHello (RFC 8446, 4.1.2). */
function offersIn(hello: Buffer): { readonly suites: readonly number[]; readonly groups: readonly number[] } {
  const listAt = (at: number, bytes: number): readonly number[] =>
    Array.from({ length: bytes / 2 }, (_, index) => hello.readUInt16BE(at + 2 * index));
  // Headers of the record and the handshake, the version and 32 random bytes come before.
  let at = 5 + 4 + 2 + 32;
  at += 1 + hello.readUInt8(at);
  const suites = listAt(at + 2, hello.readUInt16BE(at));
  at += 2 + 2 * suites.length;
  at += 1 + hello.readUInt8(at);
  for (at += 2; at < hello.length; at += 4 + hello.readUInt16BE(at + 2))
    if (hello.readUInt16BE(at) === 10) return { suites, groups: listAt(at + 6, hello.readUInt16BE(at + 4)) };
  return { suites, groups: [] };
}

describe("the TLS of createAgents", () => {
  it("offers no key exchange over a finite field, whose size a receiver chooses", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const agent = createAgents({
      policy: createTargetPolicy(["127.0.0.0/8"]),
      keepAlive: false,
      maxSockets: 1,
      lookup: createSharedLookup(),
    }).https;
    const { port } = server.address() as AddressInfo;
    const sent = httpsRequest({ host: "127.0.0.1", port, agent }).on("error", () => undefined);
    const [socket] = (await once(server, "connection")) as [Socket];
    const [hello] = (await once(socket, "data")) as [Buffer];
    sent.destroy();
    socket.destroy();
    server.close();

    const { suites, groups } = offersIn(hello);
    expect(suites.filter((suite) => dheSuites.has(suite))).to.deep.equal([]);
    expect(suites).to.include.members([0x1301, 0x1302, 0xc02b, 0xc02f]);
    expect(groups).to.deep.equal([0x001d, 0x0017, 0x0018, 0x0019]);
  });

  it("does not renegotiate, which a receiver can make costly after the handshake", async () => {
    const server = createHttpsServer({ ...selfSigned, maxVersion: "TLSv1.2" }, (request, response) => {
      const socket = request.socket as TLSSocket;
      socket.on("error", () => undefined);
      socket.renegotiate({}, () => response.end());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const agent = createAgents({
      policy: createTargetPolicy(["127.0.0.0/8"]),
      keepAlive: false,
      maxSockets: 1,
      lookup: createSharedLookup(),
    }).https;
    const { port } = server.address() as AddressInfo;
    const sent = httpsRequest({ host: "127.0.0.1", port, agent, ca: selfSigned.cert }).end();
    const ended = await once(sent, "response").then(() => "an answer", codeOf);
    server.close();

    expect(ended).to.equal("ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE");
  });
});
