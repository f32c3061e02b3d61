import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";

/** A proxy to a server that can drop all data, like a network that fails silently. */
export interface Proxy {
  readonly port: number;
  /**
   * Forwards nothing in either direction from now on. Connections stay open, and new ones are
   * accepted.
   */
  stall(): void;
  /** Forwards again, from the next connection on. Stalled connections stay stalled. */
  resume(): void;
  close(): Promise<void>;
}

/**
 * Forwards a port of this machine to the server of a URL. Nothing answers on the port before and
 * after, as when the server is down.
 *
 * @param at The port; default: a free one.
 */
export async function startProxy(target: string, at = 0): Promise<Proxy> {
  const { hostname, port } = new URL(target);
  const ends = new Set<Socket>();
  const stalled = new WeakSet<Socket>();
  let isStalled = false;

  const forward = (from: Socket, to: Socket): void => {
    from.on("data", (chunk) => {
      if (!stalled.has(from)) to.write(chunk);
    });
    from.on("end", () => {
      if (!stalled.has(from)) to.end();
    });
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    for (const end of [near, far]) {
      ends.add(end);
      if (isStalled) stalled.add(end);
      end.on("error", () => undefined);
      end.once("close", () => {
        ends.delete(end);
        if (!stalled.has(end)) for (const other of [near, far]) other.destroy();
      });
    }
    forward(near, far);
    forward(far, near);
  });
  server.listen(at, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");

  return {
    port: address.port,
    stall() {
      isStalled = true;
      for (const end of ends) stalled.add(end);
    },
    resume() {
      isStalled = false;
    },
    async close() {
      for (const end of ends) end.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Returns the URL through the proxy. */
export function through(proxy: Pick<Proxy, "port">, target: string): string {
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(proxy.port);
  return url.href;
}
