import type { RequestListener, ServerResponse } from "node:http";
import type { Listener } from "./in-order.ts";

/** A server's listener that can be replaced while it serves. */
export interface Handover {
  readonly listener: RequestListener;
  /**
   * Gives every later request to `next`. The promise resolves when each request of the previous
   * listener has its answer or has lost its client. Without a previous listener, it resolves at
   * once.
   */
  pass(next: Listener): Promise<void>;
  /**
   * Asks clients, with every later answer, to close kept-alive connections. A new connection leads
   * to another process.
   */
  drain(): void;
  /** Returns the number of requests without an answer. */
  inFlight(): number;
}

interface Generation {
  readonly listen: Listener;
  /** Number of open responses. */
  open: number;
  /** Called when a replaced generation has no open response any more. */
  onDone?: () => void;
}

export function createHandover(): Handover {
  let current: Generation | undefined;
  let isDraining = false;
  const responses = new Set<ServerResponse>();

  return {
    listener(request, response) {
      if (current === undefined) {
        // The server has no listener before the first `pass`.
        response.writeHead(503).end();
        return;
      }
      const generation = current;
      generation.open += 1;
      responses.add(response);
      // `close` follows the answer, or a client that leaves before the answer.
      response.once("close", () => {
        generation.open -= 1;
        responses.delete(response);
        if (generation.open === 0) generation.onDone?.();
      });
      if (isDraining) askToClose(response);
      generation.listen(request, response);
    },
    pass(next) {
      const before = current;
      current = { listen: next, open: 0 };
      if (before === undefined || before.open === 0) return Promise.resolve();
      return new Promise((resolve) => (before.onDone = resolve));
    },
    drain() {
      isDraining = true;
      for (const response of responses) askToClose(response);
    },
    inFlight: () => responses.size,
  };
}

/** Sets the header with which Node.js ends the connection after an answer. */
function askToClose(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("Connection", "close");
}
