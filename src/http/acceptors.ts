import { spawn } from "node:child_process";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { describeError } from "../telemetry/logged-error.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * Program that sends back each socket it receives: the reply is another descriptor of the same
 * socket. It ends when the service ends, or the connection to the service.
 */
const echo = `process.on("message", (message, handle) => process.send(message, handle))`;

/** Limit for the echo process. A Node.js process starts and ends in 40 to 70 ms. */
const echoLimitMs = 5000;

/**
 * Adds handles that accept connections of a listening server. Node.js accepts one connection in
 * each turn of its loop for each handle (libuv 1.45, libuv/libuv#3696). Behind 200 new connections
 * of one client, another client waited 200 turns, which are 0.6 s under load.
 *
 * Node.js cannot copy a descriptor. The system copies one that is sent to another process, so a
 * short-lived process sends copies back. If that fails, the server serves without these handles.
 *
 * @returns The handles, which the caller closes together with the server.
 */
export async function addAcceptors(
  server: HttpServer,
  { count, log }: { readonly count: number; readonly log: Log | undefined },
): Promise<readonly Server[]> {
  try {
    const handles = await copiesOf(server, count);
    return handles.map((handle) => acceptorOf(server, handle));
  } catch (error) {
    const fields = { event: "acceptors.failed", err: describeError(error) };
    log?.warn(fields, "connections are accepted one by one: under load, new ones wait longer");
    return [];
  }
}

interface Handle {
  close(): void;
}

function copiesOf(server: HttpServer, count: number): Promise<readonly Handle[]> {
  const { _handle: handle } = server as unknown as { readonly _handle: never };
  return new Promise((resolve, reject) => {
    const copies: Handle[] = [];
    const child = spawn(process.execPath, ["-e", echo], {
      env: {},
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      timeout: echoLimitMs,
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (copies.length === count) return;
      for (const copy of copies) copy.close();
      reject(new Error(`The process that copies the socket ended early (${code ?? signal}).`));
    });
    child.on("message", (_message, copy) => {
      copies.push(copy as unknown as Handle);
      if (copies.length < count) return;
      child.disconnect();
      resolve(copies);
    });
    for (let sent = 0; sent < count; sent += 1) child.send("copy", handle);
  });
}

/** Creates a further acceptor, with the socket options of `node:http`. */
function acceptorOf(server: HttpServer, handle: Handle): Server {
  const acceptor = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit("connection", socket),
  );
  acceptor.on("error", (error) => server.emit("error", error));
  return acceptor.listen(handle);
}
