import { expect } from "chai";
import { loadConfig } from "../../src/config/load.ts";
import { greeting } from "../../src/app/greeting.ts";

/** On a database of one's own. */
function greetingFor(env: Readonly<Record<string, string>>): string {
  const servers = {
    DATABASE_URL: "postgresql://db/x",
    AMQP_URL: "amqp://mq",
    SVC_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  const config = loadConfig({ env: { ...servers, ...env }, cwd: "/", program: "all" });
  return greeting({ config, port: 8081, metricsPort: 9091, tokenFile: undefined });
}

describe("greeting", () => {
  for (const [host, metricsHost, api, metrics] of [
    ["0.0.0.0", "", "http://localhost:8081/svc-api", "http://localhost:9091/"],
    ["127.0.0.1", "0.0.0.0", "http://127.0.0.1:8081/svc-api", "http://localhost:9091/"],
    ["0.0.0.0", "127.0.0.1", "http://localhost:8081/svc-api", "http://127.0.0.1:9091/"],
    ["::1", "", "http://[::1]:8081/svc-api", "http://[::1]:9091/"],
    ["::", "10.0.0.5", "http://localhost:8081/svc-api", "http://10.0.0.5:9091/"],
  ] as const)
    it(`names the addresses of the API and its health, on ${host} and ${metricsHost || "the same"}`, () => {
      const text = greetingFor({ SVC_HOST: host, SVC_METRICS_HOST: metricsHost });

      expect(text).to.include(`svc serves ${api}\n`).and.include(`curl '${metrics}readyz?verbose'`);
    });

  it("names the address of the console, unless the console is off", () => {
    const there = greetingFor({ SVC_PUBLIC_URL: "https://api.example.com", SVC_CONSOLE_PATH: "/desk" });

    expect(there).to.include("Console: https://api.example.com/desk\n");
    expect(greetingFor({ SVC_CONSOLE: "false" })).not.to.include("Console");
  });

  it("names the public URL, and the health on this machine", () => {
    const text = greetingFor({ SVC_PUBLIC_URL: "https://api.example.com", SVC_HOST: "127.0.0.1" });

    expect(text)
      .to.include("svc serves https://api.example.com/svc-api\n")
      .and.include("http://127.0.0.1:9091/");
  });
});
