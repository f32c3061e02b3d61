import { createServer as createPlainServer, type AddressInfo, type Server } from "node:net";
import { createServer } from "node:tls";
import { expect } from "chai";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { createMemoryLog } from "../support/http.ts";
import { selfSigned } from "../support/self-signed.ts";
import { until } from "../support/wait.ts";

/**
 * Returns the reason of the first warning of a connection to this server, which waiters get too.
 */
async function reasonAt(server: Server, protocol = "amqps"): Promise<unknown> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const giveUp = new AbortController();
  const memory = createMemoryLog();
  const reasons: string[] = [];
  const connecting = connectRabbitMq({
    url: `${protocol}://127.0.0.1:${port}`,
    log: memory.log,
    onWait: (reason) => void reasons.push(reason),
    signal: giveUp.signal,
  });
  await until(() => memory.lines.length > 0 && reasons.length > 0, { what: "a warning" });
  giveUp.abort();
  await connecting.catch(() => undefined);
  server.close();
  expect(reasons[0]).to.equal(memory.lines[0]?.["reason"]);
  return reasons[0];
}

describe("connectRabbitMq over TLS", () => {
  it("explains how to trust a server whose certificate it does not trust", async () => {
    const untrusted = createServer(selfSigned).on("tlsClientError", () => undefined);

    // Node.js 24 adds a hint of its own in the middle.
    expect(await reasonAt(untrusted)).to.match(
      /^self-signed certificate;.* give the certificate of its authority as a file: NODE_EXTRA_CA_CERTS$/,
    );
  });

  it("reports that a port is without TLS", async () => {
    // RabbitMQ answers like this to other protocols.
    const plain = createPlainServer((socket) => {
      socket.on("error", () => undefined).once("data", () => socket.end("AMQP\0\0\u0009\u0001"));
    });

    expect(await reasonAt(plain)).to.match(/without TLS.*5671/);
  });

  it("reports that a port may be for TLS, or of another program", async () => {
    const secure = createServer(selfSigned).on("tlsClientError", () => undefined);
    const web = createPlainServer((socket) => {
      socket.on("error", () => undefined).once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    });

    for (const server of [secure, web])
      expect(await reasonAt(server, "amqp")).to.match(/usually 5672\? .* usually 5671, .*amqps:\/\/$/);
  });
});
