import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

describe("svc-admin openapi", () => {
  it("prints the document without a database", async () => {
    const terminal = createMemoryTerminal();
    const env = {
      SVC_CONFIG_DIR: "config",
      SVC_ROUTE_PREFIX: "/v1",
      SVC_PUBLIC_URL: "https://api.example.com",
    };

    const status = await runAdmin({ args: ["openapi"], env, cwd: process.cwd(), terminal });

    const { stdout, stderr } = terminal.read();
    const document = JSON.parse(stdout) as {
      readonly openapi: string;
      readonly servers: unknown;
      readonly paths: object;
    };
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: "" });
    expect(document.openapi).to.equal("3.1.0");
    expect(document.servers).to.deep.equal([{ url: "https://api.example.com/v1" }]);
    expect(document.paths).to.include.keys("/resources/orders", "/webhooks/{id}");
  });

  it("lists the faults of mapping files", async () => {
    const terminal = createMemoryTerminal();

    const status = await runAdmin({
      args: ["openapi"],
      env: { SVC_CONFIG_DIR: "nowhere" },
      cwd: "/",
      terminal,
    });

    expect(status).to.equal(1);
    expect(terminal.read().stdout).to.equal("");
  });
});
