import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { endlessBody, redirectTo, startReceiver, type TestReceiver } from "../../support/receiver.ts";
import { selfSigned } from "../../support/self-signed.ts";
import {
  createTestSenders,
  deliveryBytes,
  deliveryHeaders,
  type TestSenders,
} from "../../support/senders.ts";
import { until } from "../../support/wait.ts";

describe("createSender", () => {
  let receiver: TestReceiver;
  let senders: TestSenders;

  beforeEach(async () => {
    receiver = await startReceiver();
    senders = createTestSenders();
  });
  afterEach(async () => {
    senders.close();
    await receiver.close();
  });

  describe("request", () => {
    it("is one POST of the exact bytes, with the given headers and those that HTTP needs", async () => {
      await senders.send(`${receiver.url}/hook?a=b#c`);

      expect(receiver.received).to.have.length(1);
      const [request] = await receiver.waitFor(1);
      expect(request?.method).to.equal("POST");
      expect(request?.path).to.equal("/hook?a=b");
      expect(request?.rawBody.equals(deliveryBytes)).to.equal(true);
      expect(request?.headers).to.deep.equal({
        ...Object.fromEntries(
          Object.entries(deliveryHeaders).map(([name, value]) => [name.toLowerCase(), value]),
        ),
        host: `127.0.0.1:${receiver.port}`,
        "content-length": String(deliveryBytes.length),
        connection: "keep-alive",
      });
    });

    it("goes directly to the receiver, regardless of proxies in the environment", async () => {
      const names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
      for (const name of names) process.env[name] = "http://127.0.0.1:1";
      try {
        expect((await senders.send(receiver.url)).statusCode).to.equal(200);
      } finally {
        for (const name of names) delete process.env[name];
      }
    });

    it("uses the kept connection again", async () => {
      const { post } = senders.open();
      for (let count = 0; count < 3; count++) await post(receiver.url);

      expect(receiver.received).to.have.length(3);
      expect(receiver.connectionCount()).to.equal(1);
    });

    it("opens at most maxSockets connections to a receiver", async () => {
      receiver.answer = { delayMs: 20 };
      const { post } = senders.open({ maxSockets: 2 });

      const results = await Promise.all(Array.from({ length: 6 }, () => post(receiver.url)));

      expect(results.map((result) => result.statusCode)).to.deep.equal([200, 200, 200, 200, 200, 200]);
      expect(receiver.connectionCount()).to.equal(2);
    });
  });

  describe("answer", () => {
    it("is kept with its status, headers and body", async () => {
      receiver.answer = {
        status: 202,
        headers: { "X-Trace": "t-1", "Set-Cookie": ["a=1", "b=2"], Date: "now" },
        body: "thanks ☃",
      };
      const before = Date.now();

      const result = await senders.send(receiver.url);

      const { dnsMs: _, tlsMs: _tls, connectMs: _connect, firstByteMs: _first, ...rest } = result;
      expect({ ...rest, startedAt: undefined, durationMs: undefined }).to.deep.equal({
        startedAt: undefined,
        durationMs: undefined,
        address: "127.0.0.1",
        statusCode: 202,
        responseHeaders: {
          "x-trace": "t-1",
          "set-cookie": ["a=1", "b=2"],
          date: "now",
          connection: "keep-alive",
          "content-length": "10",
        },
        responseBody: Buffer.from("thanks ☃"),
        isResponseTruncated: false,
      });
      expect(result.startedAt.getTime()).to.be.within(before, Date.now());
      expect(result.durationMs).to.be.within(0, 10_000);
    });

    it("outside 2xx is an http error that names the status, with its Retry-After", async () => {
      receiver.answer = { status: 503, headers: { "Retry-After": "7" }, body: "later" };

      const result = await senders.send(`${receiver.url}/hook?token=hidden`);

      expect(result.error).to.equal("http");
      expect(result.detail).to.equal(`127.0.0.1:${receiver.port} answered 503 Service Unavailable.`);
      expect(result.statusCode).to.equal(503);
      expect(result.retryAfterSeconds).to.equal(7);
      expect(result.responseBody?.toString()).to.equal("later");
    });

    for (const [status, answered] of [
      [400, "400 Bad Request"],
      [599, "599"],
    ] as const)
      it(`of the status ${status} is named in the detail`, async () => {
        receiver.answer = { status };

        const result = await senders.send(receiver.url);

        expect(result.detail).to.equal(`127.0.0.1:${receiver.port} answered ${answered}.`);
      });

    it("is not followed when it redirects", async () => {
      const target = await startReceiver();
      try {
        for (const status of [301, 302, 303, 307, 308]) {
          receiver.answer = redirectTo(target.url, status);
          const result = await senders.send(receiver.url);
          expect(result.error).to.equal("http");
          expect(result.statusCode).to.equal(status);
          expect(result.detail).to.match(/ answered 30\d [A-Za-z ]+; redirects are not followed\.$/);
        }
        expect(target.received).to.have.length(0);
      } finally {
        await target.close();
      }
    });

    it("is kept as received when it is compressed", async () => {
      receiver.answer = { headers: { "Content-Encoding": "gzip" }, body: "not gzip" };

      const result = await senders.send(receiver.url);

      expect(result.error).to.equal(undefined);
      expect(result.responseBody?.toString()).to.equal("not gzip");
    });

    it("of exactly 16 KiB is kept whole, and its connection too", async () => {
      receiver.answer = { body: Buffer.alloc(16 * 1024, "a") };
      const { post } = senders.open();

      const result = await post(receiver.url);
      await post(receiver.url);

      expect(result.responseBody).to.have.length(16 * 1024);
      expect(result.isResponseTruncated).to.equal(false);
      expect(receiver.connectionCount()).to.equal(1);
    });

    for (const status of [200, 500]) {
      it(`that never ends is cut at 16 KiB, and counts by its status ${status}`, async () => {
        let sent = 0;
        let isClosed = false;
        receiver.answer = (request, response) => {
          const { socket } = response;
          response.once("close", () => {
            isClosed = true;
            sent = socket?.bytesWritten ?? Infinity;
          });
          endlessBody(status)(request, response);
        };

        const result = await senders.send(receiver.url);

        expect(result.error).to.equal(status === 200 ? undefined : "http");
        expect(result.statusCode).to.equal(status);
        expect(result.responseBody).to.have.length(16 * 1024);
        expect(result.isResponseTruncated).to.equal(true);
        await until(() => isClosed, { what: "the connection to be destroyed" });
        // The buffers of sockets and streams on both sides: a sender that continued to read would
        // get more.
        expect(sent).to.be.lessThan(16 * 1024 * 1024);
      });
    }

    it("has no more than 64 headers and 8 KiB of them kept", async () => {
      const many = Array.from({ length: 200 }, (_, index) => [`X-Many-${index}`, "v"] as const);
      receiver.answer = { headers: Object.fromEntries(many) };
      const counted = await senders.send(receiver.url);
      receiver.answer = { headers: { "X-First": "a".repeat(5000), "X-Second": "b".repeat(5000) } };
      const measured = await senders.send(receiver.url);

      expect(Object.keys(counted.responseHeaders ?? {})).to.have.length(64);
      expect(Object.keys(measured.responseHeaders ?? {})).to.deep.equal(["x-first"]);
    });

    it("with a head beyond 16 KiB is a protocol error", async () => {
      receiver.answer = { headers: { "X-Large": "a".repeat(20_000) } };

      const result = await senders.send(receiver.url);

      expect(result.error).to.equal("protocol");
      expect(result.detail).to.equal(
        `127.0.0.1:${receiver.port} did not answer in valid HTTP (HPE_HEADER_OVERFLOW).`,
      );
    });

    it("that breaks off in its body is a reset, with the part that arrived", async () => {
      receiver.answer = (_request, response) => {
        response.writeHead(200, { "Content-Length": "100" });
        response.write("half", () => response.socket?.destroy());
      };

      const result = await senders.send(receiver.url);

      expect(result.error).to.equal("reset");
      expect(result.statusCode).to.equal(200);
      expect(result.responseBody?.toString()).to.equal("half");
      expect(result.isResponseTruncated).to.equal(true);
    });
  });

  describe("target", () => {
    for (const host of ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"]) {
      it(`${host} is blocked without an allowed network, and nothing is connected to`, async () => {
        const result = await senders.send(`http://${host}:${receiver.port}/`, { allowedNetworks: [] });

        expect(result).to.include({ error: "blocked", durationMs: 0, isResponseTruncated: false });
        expect(result.detail).to.equal(
          "The url must not point to a loopback address, which is outside the allowed networks.",
        );
        expect(receiver.connectionCount()).to.equal(0);
      });
    }

    it("that names a socket of this machine, which some clients accept, is not connected to", async () => {
      const folder = await mkdtemp(join(tmpdir(), "svc-send-"));
      const path = join(folder, "socket");
      let connections = 0;
      const server = createServer((socket) => {
        connections++;
        socket.destroy();
      }).listen(path);
      try {
        await once(server, "listening");

        const result = await senders.send(`http://unix:${path}:/hook`);

        expect(result.error).to.be.oneOf(["unreachable", "dns"]);
        expect(connections).to.equal(0);
      } finally {
        server.close();
        await rm(folder, { recursive: true });
      }
    });

    it("that is no URL is blocked", async () => {
      expect((await senders.send("not a url")).error).to.equal("blocked");
    });

    it("localhost is reached at the allowed loopback address", async () => {
      const result = await senders.send(`http://localhost:${receiver.port}/`, {
        allowedNetworks: ["127.0.0.0/8"],
      });

      expect(result.statusCode).to.equal(200);
    });

    it("in a network of admins is reached by an admin's webhook only, also while its connection is kept", async () => {
      const { post } = senders.open({
        allowedNetworks: [],
        adminNetworks: ["127.0.0.0/8"],
        lookup: (_name, _asker, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }]),
      });
      for (const [host, error] of [
        ["127.0.0.1", "blocked"],
        ["receiver.example.com", "dns"],
      ]) {
        const url = `http://${host}:${receiver.port}/`;

        expect((await post(url, { isAdmin: true })).statusCode, host).to.equal(200);
        expect((await post(url, { isAdmin: false })).error, host).to.equal(error);
      }
      expect(receiver.received).to.have.length(2);
    });

    it("localhost is not reached at the other loopback address", async () => {
      const result = await senders.send(`http://localhost:${receiver.port}/`, {
        allowedNetworks: ["::1/128"],
      });

      // The machine may lack the other address of localhost.
      expect(result.error).to.be.oneOf(["blocked", "dns", "refused", "unreachable"]);
      expect(receiver.connectionCount()).to.equal(0);
    });
  });

  describe("TLS", () => {
    let secure: TestReceiver;

    beforeEach(async () => {
      secure = await startReceiver({ tls: selfSigned });
    });
    afterEach(() => secure.close());

    it("refuses an untrusted certificate", async () => {
      const result = await senders.send(secure.url);

      expect(result.error).to.equal("tls");
      expect(result.detail).to.equal(
        `No trusted TLS connection to 127.0.0.1:${secure.port} could be made (DEPTH_ZERO_SELF_SIGNED_CERT).`,
      );
      expect(secure.received).to.have.length(0);
    });

    it("refuses it also when NODE_TLS_REJECT_UNAUTHORIZED would not", async () => {
      const outcomes = await sendFromProcess({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, [secure.url]);

      expect(outcomes).to.deep.equal(["tls"]);
      expect(secure.received).to.have.length(0);
    });

    it("reports a receiver without TLS", async () => {
      const result = await senders.send(receiver.url.replace("http:", "https:"));

      expect(result.error).to.equal("tls");
      expect(result.detail).to.include("(EPROTO)");
    });

    it("reaches a receiver whose certificate the process trusts, at its address and by name", async () => {
      const folder = await mkdtemp(join(tmpdir(), "svc-send-"));
      const trusted = join(folder, "trusted.pem");
      try {
        await writeFile(trusted, selfSigned.cert);
        const urls = [secure.url, `https://localhost:${secure.port}`];

        const outcomes = await sendFromProcess({ NODE_EXTRA_CA_CERTS: trusted }, urls);

        expect(outcomes).to.deep.equal(["200, TLS number", "200, TLS number"]);
        expect(secure.received).to.have.length(2);
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  });
});

/**
 * Sends from a process of its own, since Node reads its TLS environment when it starts. Returns a
 * status or an error per URL.
 */
async function sendFromProcess(env: Record<string, string>, urls: readonly string[]): Promise<unknown> {
  const program = `
    import { createSender } from ${JSON.stringify(new URL("../../../src/deliveries/attempt/send.ts", import.meta.url).href)};
    const sender = createSender({ timeoutMs: 10000, allowedNetworks: ["127.0.0.0/8"], adminNetworks: [], maxSockets: 1 });
    const outcomes = [];
    for (const url of ${JSON.stringify(urls)}) {
      const { result } = await sender.send({ url, headers: {}, body: [Buffer.from("{}")] }, { id: 1, isAdmin: false });
      outcomes.push(result.error ?? \`\${result.statusCode}, TLS \${typeof result.tlsMs}\`);
    }
    console.log(JSON.stringify(outcomes));
    sender.close();`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", "--input-type", "module", "--eval", program],
    { env: { ...process.env, ...env } },
  );
  return JSON.parse(stdout) as unknown;
}
