import { Duplex } from "node:stream";
import { expect } from "chai";
import { sliceReads } from "../../src/outbound/sliced-reads.ts";

/** Returns a connection and the lengths of what it hands out. */
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
  it("hands out at most 4 KB at once, and all of it in order", async () => {
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

  it("hands out nothing more when the first slice led to the end in a later callback", async () => {
    const { socket, lengths } = open((_read, one) => process.nextTick(() => one.destroy()));
    await turn();
    socket.push(Buffer.alloc(64 * 1024));
    socket.push(null);
    await turn();

    expect(lengths).to.deep.equal([4096]);
  });

  it("says when a paused connection has read enough", async () => {
    const { socket, lengths } = open();
    await turn();
    socket.pause();
    let pushes = 1;
    while (socket.push(Buffer.alloc(8192))) {
      pushes += 1;
      await turn();
    }
    socket.resume();
    await turn();

    expect(pushes).to.be.within(2, 1 + socket.readableHighWaterMark / 8192);
    expect(lengths.reduce((sum, length) => sum + length, 0)).to.equal(pushes * 8192);
  });

  it("ends a connection after 1 MB for an answer, and counts again for the next one", async () => {
    const { socket } = open();
    socket.on("error", () => undefined);
    await turn();
    for (let answers = 0; answers < 3; answers += 1) {
      socket.push(Buffer.alloc(1024 * 1024));
      await turn();
      if (answers < 2) socket.emit("free");
    }
    expect(socket.destroyed).to.equal(false);
    socket.push(Buffer.alloc(1));

    expect(socket.errored).to.have.property("code", "ERR_ANSWER_TOO_LARGE");
  });

  it("hands out nothing after the end of the connection", async () => {
    const { socket, lengths } = open((read, one) => read.length === 2 && one.destroy());
    await turn();
    socket.push(Buffer.alloc(64 * 1024));
    await turn();

    expect(lengths).to.deep.equal([4096, 4096]);
  });
});
