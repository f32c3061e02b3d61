import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { call } from "../support/http.ts";
import { answersIn, openRaw, type RawConnection } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

const closed = (many: readonly RawConnection[]): number =>
  many.filter((connection) => connection.isClosed()).length;

describe("requests that are sent behind each other on one connection", () => {
  let server: HttpServer;
  /** Requests that the listener has received and not answered, by path. */
  const open = new Map<string, ServerResponse>();
  const seen: string[] = [];

  beforeEach(async () => {
    open.clear();
    seen.length = 0;
    server = await startServer(
      (request, response) => {
        seen.push(request.url ?? "");
        if (request.url === "/quick") response.end('"/quick"');
        else open.set(request.url ?? "", response);
      },
      { host: "127.0.0.1", port: 0, trustedProxies: ["127.0.0.9/32"] },
    );
  });
  afterEach(() => server.close({ limitMs: 100 }));

  const answer = async (path: string, headers: Record<string, string> = {}): Promise<void> => {
    const response = await until(() => open.get(path), { what: `the request for ${path}` });
    response.writeHead(200, { ...headers, "Content-Length": path.length + 2 }).end(`"${path}"`);
  };

  it("begin after the previous answer, and are answered in order", async () => {
    const connection = await openRaw(server.port);
    connection.send(get("/a") + get("/quick") + get("/b"));
    await until(() => open.has("/a"), { what: "the first request" });
    const before = [...seen];
    await answer("/a");
    await answer("/b");
    const answers = await connection.untilAnswers(3);

    expect(before).to.deep.equal(["/a"]);
    expect(answers.map(({ json }) => json)).to.deep.equal(["/a", "/quick", "/b"]);
    connection.socket.destroy();
  });

  it("end when the client leaves", async () => {
    const connection = await openRaw(server.port);
    connection.send(get("/a") + get("/b"));
    const response = await until(() => open.get("/a"), { what: "the first request" });
    connection.socket.destroy();
    await until(() => response.destroyed, { what: "the end of the connection" });
    await call(server.port, "/quick");

    expect(seen).to.deep.equal(["/a", "/quick"]);
  });

  it("are ignored behind an answer that closes the connection", async () => {
    const connection = await openRaw(server.port);
    connection.send(get("/a") + get("/b"));
    await answer("/a", { Connection: "close" });
    const received = await connection.untilClosed();

    expect(answersIn(received).map(({ json }) => json)).to.deep.equal(["/a"]);
    expect(seen).to.deep.equal(["/a"]);
  });

  it("end only their own connection when more than 16 wait", async () => {
    const [modest, greedy] = [await openRaw(server.port), await openRaw(server.port)];
    modest.send(get("/a") + get("/quick").repeat(16));
    greedy.send(get("/b") + get("/quick").repeat(3000));
    await greedy.untilClosed();
    await answer("/a");

    expect(await modest.untilAnswers(17)).to.have.length(17);
    expect(seen.filter((path) => path === "/quick")).to.have.length(16);
    modest.socket.destroy();
  });

  it("do not count once they are answered", async () => {
    const connection = await openRaw(server.port);
    for (let round = 1; round <= 65; round += 1) {
      connection.send(get("/quick").repeat(17));
      expect(await connection.untilAnswers(round * 17)).to.have.length(round * 17);
    }

    expect(seen).to.have.length(65 * 17);
    connection.socket.destroy();
  });

  /** Opens connections of an address, each with a request in progress and 16 behind it. */
  async function fill(count: number, localAddress: string): Promise<readonly RawConnection[]> {
    const many = await Promise.all(
      Array.from({ length: count }, () => openRaw(server.port, { localAddress })),
    );
    for (const connection of many) connection.send(get("/a") + get("/quick").repeat(16));
    return many;
  }

  it("end a connection when 250 of its address wait, and none of another address", async () => {
    const many = await fill(63, "127.0.0.2");
    await until(() => closed(many) === 48, { what: "the end of all but 15" });
    const other = await openRaw(server.port);
    other.send(get("/c") + get("/quick").repeat(16));
    await answer("/c");

    expect(await other.untilAnswers(17)).to.have.length(17);
    for (const { socket } of [...many, other]) socket.destroy();
  });

  it("end a connection of a trusted proxy only when 1,000 wait on all", async () => {
    const many = await fill(63, "127.0.0.9");
    await until(() => closed(many) > 0, { what: "the end of one" });

    expect(closed(many)).to.equal(1);
    for (const { socket } of many) socket.destroy();
  });

  it("end a connection when 1,000 wait on all, until these are done with", async () => {
    // 240 of each address, and 40 of the last one.
    const addresses = [2, 3, 4, 5].map((last) => `127.0.0.${last}`);
    const many = (await Promise.all(addresses.map((address) => fill(15, address)))).flat();
    const last = await fill(3, "127.0.0.6");
    await until(() => closed(last) === 1, { what: "the end of one" });
    expect(closed(many)).to.equal(0);
    for (const { socket } of [...many, ...last]) socket.destroy();
    const later = await openRaw(server.port);
    later.send(get("/c") + get("/quick").repeat(16));
    await answer("/c");

    expect(await later.untilAnswers(17)).to.have.length(17);
    later.socket.destroy();
  });
});
