import { Duplex } from "node:stream";
import { expect } from "chai";
import { sliceReads } from "../../src/outbound/sliced-reads.ts";

/** Returns a connection and the lengths of the slices that it passes on. */
function open(onRead: (lengths: readonly number[], socket: Duplex) => void = () => undefined): {
  readonly socket: Duplex;
  readonly lengths: readonly number[];
} {
  const socket = new Duplex({ read: () => undefined, write: (_bytes, _encoding, done) => done() });
  const lengths: number[] = [];
  sliceReads(socket);
  socket.on("data", (bytes: Buffer) => {
    lengths.push(bytes.length);
    onRead(lengths, socket);
  });
  return { socket, lengths };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("sliceReads", () => {
  it("passes on at most 4 KB at once, and all bytes in order", async () => {
    const { socket, lengths } = open();
    const all: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => all.push(bytes));
    const sent = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 251));
    await turn();
    socket.push(sent);
    socket.push(Buffer.from("end"));
    socket.push(null);
    await turn();

    expect(lengths).to.deep.equal([4096, 4096, 1808, 3]);
    expect(Buffer.concat(all).equals(Buffer.concat([sent, Buffer.from("end")]))).to.equal(true);
  });

  it("passes on nothing after the end of the connection", async () => {
    const { socket, lengths } = open((read, one) => read.length === 2 && one.destroy());
    await turn();
    socket.push(Buffer.alloc(64 * 1024));
    await turn();

    expect(lengths).to.deep.equal([4096, 4096]);
  });
});
