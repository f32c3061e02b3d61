import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { addCount } from "../kit/add-count.ts";
import { addressBlock, type ClientAddresses } from "./client-address.ts";

/** A listener of Node's HTTP server. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Most requests that wait for the answer to an earlier one on the connection. Each takes up to 20
 * KB. Programs that pipeline have about ten requests in flight. One address may use a quarter of
 * the places: otherwise the connections of other addresses would be closed. A trusted proxy carries
 * the requests of many clients, and may use all places.
 */
const mostWaiting = { ofConnection: 16, ofAddress: 250, ofAll: 1000 };

/** The requests of a connection that wait for the current one. */
interface Line {
  readonly acts: (() => void)[];
  /** Block of the connection's address; empty until a request waits. */
  block: string;
}

/** Serves the requests of a connection one after the other. */
export interface InOrder {
  /**
   * Watches a new connection, and ends it when too many requests wait on it. Call it for every
   * connection.
   */
  watch(socket: Socket): void;
  /** Serves the request now, or after the earlier requests on its connection. */
  begin(request: IncomingMessage, response: ServerResponse): void;
  /** Continues with the next request of a connection. Call it when an answer has been sent. */
  next(socket: Socket): void;
}

/**
 * Serves the requests of one connection one after the other. In one turn of its loop, Node.js hands
 * out all requests in 64 KB, which may be 3,600. Four clients without a token kept others waiting
 * for 90 s. Such requests, waiting for a slow answer, ended a process of 512 MB. When the client
 * leaves, Node.js does not close an answer that waits for another one. The resources of its request
 * were then never released.
 *
 * @param addresses Names the trusted proxies.
 */
export function createInOrder(act: Listener, addresses: Pick<ClientAddresses, "isTrustedProxy">): InOrder {
  const lines = new WeakMap<Socket, Line>();
  const ofAddresses = new Map<string, number>();
  let waiting = 0;

  const isFull = (socket: Socket): boolean => {
    const line = lines.get(socket);
    if (line === undefined) return false;
    const { remoteAddress: address = "" } = socket;
    line.block ||= addressBlock(address);
    if (line.acts.length >= mostWaiting.ofConnection || waiting >= mostWaiting.ofAll) return true;
    const ofAddress = ofAddresses.get(line.block) ?? 0;
    return ofAddress >= mostWaiting.ofAddress && !addresses.isTrustedProxy(address);
  };

  function count({ block }: Line, more: number): void {
    waiting += more;
    addCount(ofAddresses, block, more);
  }

  return {
    watch(socket) {
      const { parser } = socket as Parsed;
      const handOut = parser?.onIncoming;
      if (parser === undefined || handOut === undefined) return;
      parser.onIncoming = (request, keepsAlive) => {
        if (!isOver(socket) && !isFull(socket)) return handOut(request, keepsAlive);
        socket.destroy();
        return noMore;
      };
    },
    begin(request, response) {
      const { socket } = request;
      const line = lines.get(socket);
      if (line !== undefined) {
        count(line, 1);
        line.acts.push(() => act(request, response));
        return;
      }
      lines.set(socket, { acts: [], block: "" });
      act(request, response);
    },
    next(socket) {
      const line = lines.get(socket);
      if (line === undefined) return;
      const go = isOver(socket) ? undefined : line.acts.shift();
      count(line, go === undefined ? -line.acts.length : -1);
      if (go === undefined) lines.delete(socket);
      else go();
    },
  };
}

/**
 * A connection with its parser, which the types of Node.js do not show. Destroying the connection
 * does not stop the parser; a return value of its callback does.
 */
interface Parsed {
  readonly parser?: { onIncoming?: (request: IncomingMessage, keepsAlive: boolean) => number };
}

/** Return value that tells the parser that the rest is no HTTP, as after an upgrade. */
const noMore = 2;

/**
 * Returns whether a connection takes no further answer: it is closed, or it had an answer with
 * `Connection: close`.
 */
function isOver({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}
