import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect } from "chai";
import { limitOverhead } from "../../src/outbound/tls-overhead.ts";
import { selfSigned } from "../support/self-signed.ts";
import { until } from "../support/wait.ts";

describe("limitOverhead", () => {
  let close: () => void;
  let [sender, receiver] = [{} as TLSSocket, {} as TLSSocket];
  let excesses: number;

  beforeEach(async () => {
    const server = createServer(selfSigned).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const accepted = once(server, "secureConnection");
    sender = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    sender.on("error", () => undefined).resume();
    excesses = 0;
    limitOverhead(sender, () => (excesses += 1));
    [receiver] = (await accepted) as [TLSSocket];
    receiver.on("error", () => undefined);
    close = () => {
      sender.destroy();
      server.close();
    };
  });
  afterEach(() => close());

  /** Sends bytes in records of their own. */
  async function drip(count: number): Promise<void> {
    // Node.js would join writes that wait.
    for (let index = 0; index < count && !receiver.destroyed; index += 1)
      await new Promise((resolve) => receiver.write("a", resolve));
  }

  it("ends a connection of 4,000 records of a byte", async () => {
    await drip(4_000);
    await until(() => sender.destroyed, { what: "the end" });

    expect(sender.errored).to.have.property("code", "ERR_TLS_OVERHEAD");
    expect(excesses).to.equal(1);
  });

  it("lets 4 MB in large records through, and 700 records of a byte for each answer", async () => {
    receiver.write(Buffer.alloc(4_000_000));
    for (let bytes = 4_000_700, answers = 0; answers < 10; answers += 1, bytes += 700) {
      await drip(700);
      await until(() => sender.bytesRead === bytes, { what: "an answer" });
      sender.emit("free");
    }
    expect(excesses).to.equal(0);
    await drip(4_000);
    await until(() => excesses === 1, { what: "the end" });
  });
});
