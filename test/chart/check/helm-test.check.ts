import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { podOf, render } from "./chart.ts";

/** Runs the Pod's program against an API with this answer of `whoami`, with one attempt. */
async function runAgainst(
  whoamiStatus: number,
): Promise<{ readonly status: number; readonly output: string }> {
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/svc-api/whoami" ? whoamiStatus : 200;
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const pod = podOf(render({}), "test");
  const { command = [], args = [] } = pod.container as typeof pod.container & {
    readonly command?: readonly string[];
  };
  const program = (args[0] ?? "")
    .replace(/http:\/\/release-svc[a-z-]*:\d+/g, `http://127.0.0.1:${port}`)
    .replace("60_000", "0");
  const child = spawn(command[0] ?? "", [...command.slice(1), program]);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [status] = (await once(child, "close")) as [number];
  server.close();
  return { status, output };
}

describe("helm test", () => {
  it("passes when both programs are ready and the API asks for a token", async () => {
    const { status, output } = await runAgainst(401);

    expect(output.match(/^ok http/gm), output).to.have.length(3);
    expect(status).to.equal(0);
  });

  it("fails with the reason when the API accepts requests without a token", async () => {
    const { status, output } = await runAgainst(200);

    expect(output).to.match(/FAILED .*whoami: 200, expected 401/);
    expect(status).to.equal(1);
  });
});
