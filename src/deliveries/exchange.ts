import type { ClientRequest, IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { got, type Response } from "got";
import type { Agents } from "./connections.ts";

/** Longer response heads end the connection: Node's default, held against --max-http-header-size. */
const maxHeadBytes = 16 * 1024;

/** One delivery request, as it goes over the wire. */
export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Uint8Array[];
}

/** How an exchange came to its end. */
export type Ending =
  /** The whole response was read; the connection can be used again. */
  | { readonly kind: "complete" }
  /** The body was longer than what is read of it; the connection was destroyed. */
  | { readonly kind: "cut" }
  | { readonly kind: "expired"; readonly during: "connect" | "head" | "body" }
  | {
      readonly kind: "broken";
      readonly error: unknown;
      /** The connection was a kept one that the receiver had closed in the meantime: the request did not get there. */
      readonly isStale: boolean;
    };

export interface Exchange {
  readonly ending: Ending;
  /** Undefined when no complete head came. */
  readonly head: { readonly statusCode: number; readonly headers: IncomingHttpHeaders } | undefined;
  /** What was read of the body, at most `maxBodyBytes`. */
  readonly body: Buffer;
}

const client = got.extend({
  retry: { limit: 0 },
  followRedirect: false,
  // The addresses of `http://unix:/path` are of this machine.
  enableUnixSockets: false,
  throwHttpErrors: false,
  // What is stored is what was sent, and nothing small can unfold into something large.
  decompress: false,
  maxHeaderSize: maxHeadBytes,
});

/** Makes one request over one connection. Never rejects. */
export function exchange({
  post,
  agents,
  deadline,
  maxBodyBytes,
}: {
  readonly post: Post;
  readonly agents: Agents;
  /** Ends whatever is going on; not aborted yet. got's own time limits are several, and none of them covers the body's end. */
  readonly deadline: AbortSignal;
  readonly maxBodyBytes: number;
}): Promise<Exchange> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let head: Exchange["head"];
    let request: ClientRequest | undefined;
    let bytesReadBefore = 0;

    const stream = client.stream.post(new URL(post.url), {
      agent: agents,
      headers: post.headers,
      body: Buffer.concat(post.body),
    });

    const settle = (ending: Ending): void => {
      deadline.removeEventListener("abort", expire);
      if (ending.kind !== "complete") stream.destroy();
      resolve({ ending, head, body: Buffer.concat(chunks).subarray(0, maxBodyBytes) });
    };
    const expire = (): void => {
      const isConnected = request?.socket?.connecting === false;
      settle({ kind: "expired", during: head === undefined ? (isConnected ? "head" : "connect") : "body" });
    };

    stream.on("request", (sent: ClientRequest) => {
      request = sent;
      sent.once("socket", (socket: Socket) => {
        bytesReadBefore = socket.bytesRead;
      });
    });
    stream.on("response", ({ statusCode, headers }: Response) => {
      head = { statusCode, headers };
    });
    stream.on("data", (chunk: Buffer) => {
      if (size > maxBodyBytes) return;
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBodyBytes) settle({ kind: "cut" });
    });
    stream.once("end", () => settle({ kind: "complete" }));
    // Not `once`: an error after the end has to find a listener too, and `resolve` heeds only the first ending.
    stream.on("error", (error: unknown) => {
      const isUnanswered = head === undefined && request?.socket?.bytesRead === bytesReadBefore;
      const isStale = isUnanswered && request?.reusedSocket === true && isClosedConnection(error);
      settle({ kind: "broken", error, isStale });
    });
    deadline.addEventListener("abort", expire, { once: true });
  });
}

function isClosedConnection(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}
