#!/usr/bin/env node
// The image's HEALTHCHECK, without curl: exits with 0 when the service of this container is ready.
// Otherwise exits with 1 and prints the reason, for `docker inspect`.
import { get } from "node:http";
import { loadMetricsAddress } from "../config/load.ts";
import { messageOf } from "../kit/errors.ts";
import { ownAddress } from "../kit/host.ts";

const timeoutMs = 4000;

function fail(reason: string): never {
  console.error(reason);
  process.exit(1);
}

try {
  const { host, port, faults } = loadMetricsAddress({ env: process.env, cwd: process.cwd() });
  get({ host: ownAddress(host), port, path: "/readyz?verbose", timeout: timeoutMs }, (response) => {
    if (response.statusCode === 200) process.exit(0);
    response
      .setEncoding("utf8")
      .once("data", fail)
      .once("end", () => fail(`HTTP ${response.statusCode}`));
  })
    .on("timeout", () => fail(`no answer within ${timeoutMs} ms`))
    // Without the settings of the file, the port may be wrong.
    .on("error", ({ message }) => fail([...faults, message].join("\n")));
} catch (error) {
  fail(messageOf(error));
}
