import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

type Act = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Most requests that wait for the answer to one before them. Each takes up to 20 KB. Programs that
 * pipeline at all have some ten of them under way.
 */
const mostWaiting = { ofConnection: 16, ofAll: 1000 };

/** The requests of a connection behind the one that is at work. */
type Line = (() => void)[];

/** Acts on the requests of a connection in turn. */
export interface InOrder {
  /** Ends a connection on which too many requests wait. Call it for every new one. */
  watch(socket: Socket): void;
  /** Acts now, or when the requests before it on its connection are answered. */
  begin(request: IncomingMessage, response: ServerResponse): void;
  /** Goes on with the next request of a connection; call it when an answer is out. */
  next(socket: Socket): void;
}

/**
 * Serves the requests of one connection one after the other. Node.js hands out all that it finds
 * in 64 KB, which may be 3,600, in one turn of its loop: 4 clients without a token kept others
 * waiting for 90 s. Behind an answer that was slow, such requests ended a process of 512 MB. Nor
 * does Node.js close an answer that waits for another one when the client leaves: what its request
 * holds was never given back.
 */
export function createInOrder(act: Act): InOrder {
  const lines = new WeakMap<Socket, Line>();
  let waiting = 0;

  const isFull = (socket: Socket): boolean => {
    const line = lines.get(socket);
    return line !== undefined && (line.length >= mostWaiting.ofConnection || waiting >= mostWaiting.ofAll);
  };

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
        waiting += 1;
        line.push(() => act(request, response));
        return;
      }
      lines.set(socket, []);
      act(request, response);
    },
    next(socket) {
      const line = lines.get(socket) ?? [];
      const go = isOver(socket) ? undefined : line.shift();
      waiting -= go === undefined ? line.length : 1;
      if (go === undefined) lines.delete(socket);
      else go();
    },
  };
}

/**
 * The parser of a connection, which the types of Node.js do not show. Destroying the connection
 * does not stop the parser; a return value of its callback does.
 */
interface Parsed {
  readonly parser?: {
    onIncoming?: (request: IncomingMessage, keepsAlive: boolean) => number;
  };
}

/** Tells the parser that what follows is no HTTP, as behind an upgrade. */
const noMore = 2;

/** Returns true after an answer with `Connection: close`, too: no other can follow it. */
function isOver({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}
