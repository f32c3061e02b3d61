import { Agent, request } from "node:http";
import { countsText, megabytes } from "../markdown.ts";

export interface Question {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  /** Default: the attacker's own valid token. */
  readonly token?: string;
  readonly localAddress?: string;
  /** The client leaves without the answer, this long after the request was sent. */
  readonly leavesAfterMs?: number;
}

/** A client with a valid token, which counts the cost of its attack. */
export interface Attacker {
  readonly port: number;
  readonly token: string;
  send(question: Question): Promise<void>;
  /** Returns the bytes of a request without a body. */
  head(question: Question): string;
  count(what: string): void;
  /** Returns the outcomes and the bytes sent and received: `POST 422: 120, ECONNRESET: 3`. */
  cost(): string;
  /** Returns the number of outcomes by status, or by error code. */
  outcomes(): Readonly<Record<string, number>>;
  close(): void;
}

const headersOf = (token: string): Record<string, string> => ({
  Host: "svc",
  Authorization: `Bearer ${token}`,
});

export function createAttacker({
  port,
  token: own,
}: {
  readonly port: number;
  readonly token: string;
}): Attacker {
  const agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  const counts: Record<string, number> = {};
  let bytes = 0;
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);

  return {
    port,
    token: own,
    count,
    send({ method, path, body, token = own, localAddress, leavesAfterMs }) {
      return new Promise((resolve) => {
        const sent = request(
          {
            agent,
            host: "127.0.0.1",
            port,
            method,
            path,
            ...(localAddress === undefined ? {} : { localAddress }),
            headers: {
              ...headersOf(token),
              ...(body === undefined
                ? {}
                : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }),
            },
          },
          (answer) => {
            answer.on("data", (chunk: Buffer) => (bytes += chunk.length));
            answer.once("close", () => {
              count(String(answer.statusCode));
              resolve();
            });
          },
        );
        sent.once("error", (error: NodeJS.ErrnoException) => {
          count(error.code ?? error.message);
          resolve();
        });
        if (leavesAfterMs !== undefined)
          sent.once("finish", () => setTimeout(() => sent.destroy(), leavesAfterMs));
        bytes += body?.length ?? 0;
        sent.end(body);
      });
    },
    head({ method, path, token = own }) {
      const lines = Object.entries(headersOf(token)).map(([name, value]) => `${name}: ${value}\r\n`);
      return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
    },
    cost() {
      return [countsText(counts), `${megabytes(bytes)} MB`].filter(Boolean).join(", ");
    },
    outcomes: () => counts,
    close: () => agent.destroy(),
  };
}
