import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
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

  it("escapes characters of the mapping files that could control a terminal", async () => {
    const file = String.raw`{ name: notes, model: Note, triggers: [], fields: { id: { type: Int, id: true }, kind: { type: Enum, values: [a, "\u009b2J\u202e"] } } }`;
    const folder = createMappingFolder({ "n.yaml": file });
    const terminal = createMemoryTerminal();

    await runAdmin({ args: ["openapi"], env: { SVC_CONFIG_DIR: folder.configDir }, cwd: "/", terminal });

    folder.remove();
    const { stdout } = terminal.read();
    expect(stdout)
      .to.include(String.raw`"\u009b2J\u202e"`)
      .and.not.match(/[\x7f-\x9f\p{Cf}]/u);
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
