import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import type { Pool } from "pg";
import { readInPortions } from "../../src/db/read-portions.ts";
import { openDatabase } from "../../src/db/client.ts";
import { createTestDatabase } from "../support/database.ts";

describe("readInPortions", () => {
  it("reads a result of 2 MB in several turns of the event loop, and all of it", async () => {
    const pool = new EventEmitter();
    readInPortions(pool as Pool);
    const stream = new PassThrough({ highWaterMark: 4 * 1024 * 1024 });
    pool.emit("connect", { connection: { stream } });
    const turnOf: number[] = [];
    let turn = 0;
    let bytes = 0;
    stream.on("data", (chunk: Buffer) => {
      turnOf.push(turn);
      bytes += chunk.length;
    });
    stream.pause();
    for (let chunk = 0; chunk < 32; chunk += 1) stream.write(Buffer.alloc(64 * 1024));
    stream.end();
    stream.resume();

    while (!stream.readableEnded) {
      await new Promise((resolve) => setImmediate(resolve));
      turn += 1;
    }

    expect(bytes).to.equal(2 * 1024 * 1024);
    expect(Math.max(...turnOf)).to.be.at.least(7);
    for (const one of new Set(turnOf)) expect(turnOf.filter((at) => at === one).length).to.be.at.most(4);
  });

  it("reads the results of several connections at no more a turn", async () => {
    const pool = new EventEmitter();
    readInPortions(pool as Pool);
    const counts: number[] = [];
    let turn = 0;
    const streams = Array.from({ length: 4 }, () => {
      const stream = new PassThrough({ highWaterMark: 4 * 1024 * 1024 });
      pool.emit("connect", { connection: { stream } });
      stream.on("data", () => (counts[turn] = (counts[turn] ?? 0) + 1));
      stream.pause();
      for (let chunk = 0; chunk < 16; chunk += 1) stream.write(Buffer.alloc(64 * 1024));
      stream.end();
      return stream;
    });
    for (const stream of streams) stream.resume();

    while (streams.some(({ readableEnded }) => !readableEnded)) {
      await new Promise((resolve) => setImmediate(resolve));
      turn += 1;
    }

    expect(counts.reduce((sum, count) => sum + count)).to.equal(64);
    // Four, and one of each other connection, which is paused only then.
    expect(Math.max(...counts)).to.be.at.most(7);
  });

  it("leaves results of all sizes unchanged, one after the other", async () => {
    const created = await createTestDatabase();
    const database = await openDatabase({ url: created.url, poolSize: 2, isEmbedded: false });
    for (const size of [1, 300_000, 3_000_000, 200_000, 10]) {
      const { rows } = await database.pool.query<{ text: string }>("SELECT repeat('a', $1::int) AS text", [
        size,
      ]);
      expect(rows.map(({ text }) => text.length)).to.deep.equal([size]);
    }
    await database.close();
    await created.drop();
  });
});
