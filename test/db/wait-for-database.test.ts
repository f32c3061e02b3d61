import { connect, createServer, type Server } from "node:net";
import { TLSSocket } from "node:tls";
import { expect } from "chai";
import { waitForDatabase } from "../../src/db/client.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase } from "../support/database.ts";
import { selfSigned } from "../support/self-signed.ts";

const log = createLog({ level: "silent" });

describe("waitForDatabase", () => {
  it("resolves once the server answers, after it did not", async () => {
    const created = await createTestDatabase();
    const { hostname, port } = new URL(created.url);
    const proxy = await listen();
    const url = new URL(created.url);
    url.hostname = "127.0.0.1";
    url.port = String(proxy.port);
    proxy.server.close();
    const waiting = waitForDatabase({ url: url.href, log, signal: AbortSignal.timeout(15_000) });

    const forwarding = await forward({ from: proxy.port, host: hostname, to: Number(port) });

    await waiting;
    forwarding.close();
    await created.drop();
  });

  it("throws at once for a database that does not exist", async () => {
    const created = await createTestDatabase();
    const url = new URL(created.url);
    url.pathname = "/svc_test_nowhere";

    const failure = await failureOf(
      waitForDatabase({ url: url.href, log, signal: AbortSignal.timeout(15_000) }),
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure)
      .to.have.property("message")
      .that.matches(/refuses the connection.*svc_test_nowhere.*\. Check .*\(DATABASE_URL\)\.$/);
    await created.drop();
  });

  it("names TLS when the server accepts no connection without it", async () => {
    const said = 'no pg_hba.conf entry for host "10.0.0.7", user "svc", database "svc", no encryption';
    const server = createServer((socket) => {
      socket.once("data", () => socket.end(refusal("28000", said)));
      socket.on("error", () => undefined);
    });
    const url = `postgresql://svc:right@127.0.0.1:${await portOf(server)}/svc`;

    const failure = await failureOf(waitForDatabase({ url, log, signal: AbortSignal.timeout(5_000) }));

    server.close();
    expect((failure as Error).message).to.match(
      /no encryption\. Check .* \(DATABASE_URL\), and add sslmode=verify-full to it where the server asks for TLS\.$/,
    );
  });

  it("throws at once for a server that asks for a password and a URL without one", async () => {
    const server = createServer((socket) => {
      socket.once("data", () => {
        socket.write(authentication(10, "SCRAM-SHA-256\0\0"));
        socket.once("data", () => socket.write(authentication(11, "r=,s=,i=4096")));
      });
      socket.on("error", () => undefined);
    });
    const port = await portOf(server);
    const urls = [`postgresql://svc@127.0.0.1:${port}/svc`, `postgresql://svc:@127.0.0.1:${port}/svc`];

    const failures = await Promise.all(
      urls.map((url) => failureOf(waitForDatabase({ url, log, signal: AbortSignal.timeout(5_000) }))),
    );

    server.close();
    expect(failures.map((failure) => (failure as Error).message)).to.deep.equal(
      urls.map(() => "The database asks for a password, and its URL (database.url, DATABASE_URL) has none"),
    );
  });

  for (const said of [
    "SASL authentication failed",
    "password authentication failed",
    "no such database: svc",
  ])
    it(`throws at once for PgBouncer that says "${said}", and waits for the server behind it`, async () => {
      const answers = ["server login has been failing, try again later (server_login_retry)", said];
      const server = createServer((socket) => {
        socket.once("data", () => socket.end(refusal("08P01", answers.shift() ?? said)));
        socket.on("error", () => undefined);
      });
      const reasons: string[] = [];

      const failure = await failureOf(
        waitForDatabase({
          url: `postgresql://svc:wrong@127.0.0.1:${await portOf(server)}/svc`,
          log,
          signal: AbortSignal.timeout(5_000),
          onWait: (reason) => void reasons.push(reason),
        }),
      );

      server.close();
      expect(reasons).to.have.length(1);
      expect((failure as Error).message).to.equal(
        `The database refuses the connection: ${said}. Check the user, the password and the database of database.url (DATABASE_URL).`,
      );
    });

  it("throws at once for a server without TLS whose URL requires it", async () => {
    const server = createServer((socket) => socket.once("data", () => socket.write("N")));
    const url = `postgresql://svc@127.0.0.1:${await portOf(server)}/svc?sslmode=verify-full`;

    const failure = await failureOf(waitForDatabase({ url, log, signal: AbortSignal.timeout(5_000) }));

    server.close();
    expect(failure)
      .to.have.property("message")
      .that.matches(/without TLS only: set sslmode=disable/);
  });

  it("explains how to trust a server whose certificate it does not trust", async () => {
    const server = createServer((socket) =>
      socket.once("data", () => {
        socket.write("S");
        new TLSSocket(socket, { isServer: true, ...selfSigned }).on("error", () => undefined);
      }),
    );
    const port = await portOf(server);
    const reasons: string[] = [];
    const giveUp = new AbortController();

    await failureOf(
      waitForDatabase({
        url: `postgresql://svc@127.0.0.1:${port}/svc?sslmode=verify-full`,
        log,
        signal: giveUp.signal,
        onWait(reason) {
          reasons.push(reason);
          giveUp.abort();
        },
      }),
    );

    server.close();
    expect(reasons).to.have.lengthOf(1);
    // Node.js 24 adds a hint of its own in the middle.
    expect(reasons[0]).to.match(
      /^self-signed certificate;.* give the certificate of its authority as a file: NODE_EXTRA_CA_CERTS, or sslrootcert in the URL$/,
    );
  });

  it("throws when the signal aborts, without the password", async () => {
    const failure = await failureOf(
      waitForDatabase({
        url: "postgresql://svc:s3cret@127.0.0.1:1/svc",
        log,
        signal: AbortSignal.timeout(50),
      }),
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure)
      .to.have.property("message")
      .that.includes("does not answer")
      .and.does.not.include("s3cret");
  });
});

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** Returns an error of PostgreSQL's protocol. */
function refusal(code: string, message: string): Buffer {
  const fields = `SFATAL\0C${code}\0M${message}\0\0`;
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, Buffer.from(fields)]);
}

/** Returns a message of PostgreSQL's about the authentication. */
function authentication(kind: number, data: string): Buffer {
  const message = Buffer.alloc(9 + Buffer.byteLength(data));
  message.write("R");
  message.writeInt32BE(message.length - 1, 1);
  message.writeInt32BE(kind, 5);
  message.write(data, 9);
  return message;
}

async function listen(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  return { server, port: await portOf(server) };
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Pipes connections to `from` on to the real server. */
async function forward({ from, host, to }: { from: number; host: string; to: number }): Promise<Server> {
  const server = createServer((socket) => {
    const target = connect(to, host);
    socket.pipe(target).pipe(socket);
    for (const end of [socket, target]) end.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(from, "127.0.0.1", resolve));
  return server;
}
