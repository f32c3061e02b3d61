import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";

/** The data that a stalled proxy drops: that of clients, that of the server, or both. */
export type Dropped = "requests" | "answers" | "all";

/** A proxy to a server that can drop all data, like a network that fails silently. */
export interface Proxy {
  readonly port: number;
  /**
   * Forwards nothing from now on, or nothing in one direction. Connections stay open, and new ones
   * are accepted.
   */
  stall(dropped?: Dropped): void;
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
  /** Open ends of connections, and whether they are those of clients. */
  const ends = new Map<Socket, { readonly isNear: boolean }>();
  const stalled = new WeakSet<Socket>();
  let dropped: Dropped | undefined;

  const stallIfDropped = (end: Socket, { isNear }: { readonly isNear: boolean }): void => {
    if (dropped === "all" || dropped === (isNear ? "requests" : "answers")) stalled.add(end);
  };

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
      ends.set(end, { isNear: end === near });
      stallIfDropped(end, { isNear: end === near });
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
    stall(given = "all") {
      dropped = given;
      for (const [end, side] of ends) stallIfDropped(end, side);
    },
    resume() {
      dropped = undefined;
    },
    async close() {
      for (const end of ends.keys()) end.destroy();
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
