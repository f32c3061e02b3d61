import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { AddressLookup } from "../../src/outbound/shared-lookup.ts";
import { createFetchJson } from "../../src/users/fetch-json.ts";

const faultOf = async (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => "none",
    (error: unknown) => String(error),
  );

const lookup: AddressLookup = (_name, _asker, tell) =>
  process.nextTick(tell, null, [{ address: "127.0.0.1", family: 4 }]);

describe("createFetchJson", () => {
  let server: Server;
  let url: string;
  let answer: RequestListener;
  let requests: number;

  before(async () => {
    server = createServer((request, response) => {
      requests += 1;
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  });

  beforeEach(() => {
    requests = 0;
  });

  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const fetchJson = createFetchJson({ allowedNetworks: ["127.0.0.0/8"], timeLimitMs: 500 });

  it("fetches a document", async () => {
    answer = (_request, response) => response.end('{"keys":[]}');

    expect(await fetchJson(url)).to.deep.equal({ keys: [] });
  });

  for (const [what, listener] of [
    ["a redirect", (_request, response) => response.writeHead(302, { location: "/elsewhere" }).end("{}")],
    ["an error", (_request, response) => response.writeHead(500).end("{}")],
    ["what is no JSON", (_request, response) => response.end("<html>")],
    ["what is compressed", (_request, response) => response.end(gzipSync('{"keys":[]}'))],
    ["a huge answer", (_request, response) => response.end(JSON.stringify({ keys: ["x".repeat(300_000)] }))],
    [
      "an answer without an end",
      (_request, response) => {
        const timer = setInterval(() => response.write(" ".repeat(64 * 1024)), 1);
        response.once("close", () => clearInterval(timer));
      },
    ],
    ["an answer that does not come", () => undefined],
    [
      "an answer that comes slowly",
      (_request, response) => {
        const timer = setInterval(() => response.write(" "), 50);
        response.once("close", () => clearInterval(timer));
      },
    ],
  ] satisfies readonly (readonly [string, RequestListener])[])
    it(`rejects for ${what}, and does not try again`, async () => {
      answer = listener;

      expect(await faultOf(fetchJson(url))).not.to.equal("none");
      expect(requests).to.equal(1);
    });

  it("connects to no address behind a name that is not allowed", async () => {
    answer = (_request, response) => response.end("{}");
    const named = url.replace("127.0.0.1", "keys.example.com");

    expect(await createFetchJson({ allowedNetworks: ["127.0.0.0/8"], lookup })(named)).to.deep.equal({});
    expect(await faultOf(createFetchJson({ allowedNetworks: [], lookup })(named))).not.to.equal("none");
    expect(requests).to.equal(1);
  });

  for (const [what, target] of [
    ["an address", () => url],
    ["a name", () => url.replace("127.0.0.1", "localhost")],
    ["an address of a cloud's metadata", () => "http://169.254.169.254/latest"],
    ["another scheme", () => "file:///etc/passwd"],
  ] as const)
    it(`connects to no network that is not allowed, by ${what}`, async () => {
      answer = (_request, response) => response.end("{}");

      expect(await faultOf(createFetchJson({ allowedNetworks: [] })(target()))).not.to.equal("none");
      expect(requests).to.equal(0);
    });
});
