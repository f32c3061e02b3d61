import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { freePort } from "../support/private-process.ts";
import { binary, writeConfiguration } from "../support/program.ts";

interface Outcome {
  readonly code: number;
  readonly stderr: string;
}

function check(env: Readonly<Record<string, string>>): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [binary("healthcheck")],
      { env: { PATH: process.env["PATH"], ...env } },
      (error, _stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stderr }),
    );
  });
}

describe("healthcheck", () => {
  let server: Server;
  let env: Readonly<Record<string, string>>;
  let asked: (string | undefined)[];
  let answer: { readonly status: number; readonly text: string };

  before(async () => {
    server = createServer((request, response) => {
      asked.push(request.url);
      response.writeHead(answer.status).end(answer.text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    env = { SVC_METRICS_PORT: String((server.address() as AddressInfo).port) };
  });

  beforeEach(() => {
    asked = [];
  });

  after(() => server.close());

  it("ends with 0 without output when the service is ready", async () => {
    answer = { status: 200, text: "ok" };

    expect(await check(env)).to.deep.equal({ code: 0, stderr: "" });
    expect(asked).to.deep.equal(["/readyz?verbose"]);
  });

  it("requests the metrics address, not that of the API", async () => {
    answer = { status: 200, text: "ok" };

    for (const host of ["0.0.0.0", "127.0.0.1"])
      expect(await check({ ...env, SVC_HOST: "192.0.2.1", SVC_METRICS_HOST: host })).to.include({ code: 0 });
    expect(asked).to.have.length(2);
  });

  it("ends with 1 and the reasons when it is not", async () => {
    answer = { status: 503, text: "[-] broker: not connected" };

    expect(await check(env)).to.deep.equal({ code: 1, stderr: "[-] broker: not connected\n" });
  });

  it("ends with 0 while the service runs although its settings on disk have a fault", async () => {
    answer = { status: 200, text: "ok" };
    const service = `http: { prot: 1, port: none }\nmetrics: { port: ${env["SVC_METRICS_PORT"]} }`;
    const written = writeConfiguration({ service, resources: {} });
    try {
      expect(await check(written.env)).to.deep.equal({ code: 0, stderr: "" });
    } finally {
      written.dispose();
    }
  });

  it("names the fault of the file when there is no answer at its address", async () => {
    const port = await freePort();
    const written = writeConfiguration({ service: "metrics: { port: 9191\n", resources: {} });
    try {
      const { code, stderr } = await check({ ...written.env, SVC_METRICS_PORT: String(port) });

      expect(code).to.equal(1);
      expect(stderr)
        .to.match(/^\S*service\.yaml:\d+:\d+: /)
        .and.include(`ECONNREFUSED 127.0.0.1:${port}`);
    } finally {
      written.dispose();
    }
  });

  it("ends with 1 without an answer, or when the settings have faults", async () => {
    const alone = await check({ SVC_METRICS_PORT: String(await freePort()) });
    const faulty = await check({ SVC_METRICS_PORT: "none" });

    expect(alone.code).to.equal(1);
    expect(alone.stderr).to.include("ECONNREFUSED");
    expect(faulty.code).to.equal(1);
    expect(faulty.stderr).to.include("SVC_METRICS_PORT");
  });
});
