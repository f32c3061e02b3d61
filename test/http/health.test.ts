import { expect } from "chai";
import { createHealthListener } from "../../src/http/health.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { call, type Answer } from "../support/http.ts";
import { until } from "../support/wait.ts";

describe("createHealthListener", () => {
  let server: HttpServer;
  let database: () => Promise<void>;
  let scrape: () => Promise<string>;

  before(async () => {
    const checks = { database: () => database(), broker: () => Promise.resolve() };
    const metrics = { scrape: () => scrape(), contentType: "text/plain; version=0.0.4" };
    server = await startServer(createHealthListener(checks, metrics, 50), {
      host: "127.0.0.1",
      port: 0,
    });
  });

  beforeEach(() => {
    database = () => Promise.resolve();
  });

  after(() => server.close());

  it("answers /livez independently of the checks", async () => {
    database = () => Promise.reject(new Error("refused"));

    const answer = await call(server.port, "/livez");

    expect([answer.status, answer.text]).to.deep.equal([200, "ok\n"]);
  });

  it("answers /readyz with 200 when every check passes", async () => {
    const answer = await call(server.port, "/readyz");

    expect([answer.status, answer.text]).to.deep.equal([200, "ok\n"]);
  });

  it("answers /readyz with 503 when one fails, and keeps the reason for ?verbose", async () => {
    database = () => Promise.reject(new Error("refused"));

    const brief = await call(server.port, "/readyz");
    const verbose = await call(server.port, "/readyz?verbose");

    expect([brief.status, brief.text]).to.deep.equal([503, "not ready\n"]);
    expect(verbose.status).to.equal(503);
    expect(verbose.text).to.equal("[-] database failed: refused\n[+] broker ok\nnot ready\n");
  });

  it("leaves out only the excluded checks", async () => {
    database = () => Promise.reject(new Error("refused"));

    const excluded = await call(server.port, "/readyz?verbose&exclude=database");
    const other = await call(server.port, "/readyz?verbose&exclude=broker&exclude=none");

    expect([excluded.status, excluded.text]).to.deep.equal([200, "[+] broker ok\nok\n"]);
    expect([other.status, other.text]).to.deep.equal([503, "[-] database failed: refused\nnot ready\n"]);
  });

  it("runs one check for all requests during it, and a new one afterwards", async () => {
    let [runs, asked] = [0, 0];
    let pass: (() => void) | undefined;
    const check = (): Promise<void> => {
      runs += 1;
      return new Promise((resolve) => (pass = resolve));
    };
    const metrics = { scrape: () => scrape(), contentType: "text/plain" };
    const listener = createHealthListener({ database: check }, metrics);
    const counting = await startServer(
      (request, response) => {
        asked += 1;
        listener(request, response);
      },
      { host: "127.0.0.1", port: 0 },
    );
    const ask = (count: number): Promise<readonly Answer[]> =>
      Promise.all(Array.from({ length: count }, () => call(counting.port, "/readyz")));
    const first = ask(20);
    await until(() => asked === 20, { what: "all of them" });
    pass?.();
    const statuses = (await first).map(({ status }) => status);
    const second = ask(1);
    await until(() => runs === 2, { what: "a new check" });
    pass?.();
    await second;

    expect(statuses).to.deep.equal(Array.from({ length: 20 }, () => 200));
    expect(runs).to.equal(2);
    await counting.close();
  });

  it("counts a check as failed when it times out or throws at once", async () => {
    database = () => new Promise(() => undefined);
    const late = await call(server.port, "/readyz?verbose");
    database = () => {
      throw new Error("at once");
    };
    const thrown = await call(server.port, "/readyz?verbose");

    expect([late.status, late.text]).to.deep.equal([
      503,
      "[-] database failed: no answer within 50 ms\n[+] broker ok\nnot ready\n",
    ]);
    expect([thrown.status, thrown.text]).to.deep.equal([
      503,
      "[-] database failed: at once\n[+] broker ok\nnot ready\n",
    ]);
  });

  it("answers 404 to other paths and 405 to other methods", async () => {
    const path = await call(server.port, "/svc-api/resources");
    const method = await call(server.port, "/livez", { method: "POST" });

    expect([path.status, method.status, method.headers["allow"]]).to.deep.equal([404, 405, "GET, HEAD"]);
  });

  it("answers /metrics with the scrape, in its content type", async () => {
    scrape = () => Promise.resolve("# HELP one One.\none 1\n");

    const answer = await call(server.port, "/metrics");

    expect([answer.status, answer.text]).to.deep.equal([200, "# HELP one One.\none 1\n"]);
    expect(answer.headers["content-type"]).to.equal("text/plain; version=0.0.4");
  });

  it("answers /metrics with 500 and the reason when the scrape fails", async () => {
    scrape = () => Promise.reject(new Error("no registry"));

    const answer = await call(server.port, "/metrics");

    expect([answer.status, answer.text]).to.deep.equal([
      500,
      "the metrics could not be collected: no registry\n",
    ]);
  });
});
