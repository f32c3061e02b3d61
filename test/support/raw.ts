import { connect, type Socket } from "node:net";
import { until } from "./wait.ts";

/** A connection on which a test sends exact bytes. */
export interface RawConnection {
  readonly socket: Socket;
  send(bytes: string | Buffer): void;
  /** Returns the data received so far. */
  received(): string;
  isClosed(): boolean;
  /** Waits for the end of the connection, and returns all received data. */
  untilClosed(): Promise<string>;
  /** Waits for this number of answers, and returns them. */
  untilAnswers(count: number): Promise<readonly RawAnswer[]>;
}

interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON, if any. */
  readonly json: unknown;
}

/**
 * Connects to a port of this machine. A reset counts as an end.
 *
 * @param allowHalfOpen Whether the client stays open when the server closes.
 * @param localAddress The client's own address, such as 127.0.0.2.
 */
export async function openRaw(
  port: number,
  {
    allowHalfOpen = false,
    localAddress,
  }: { readonly allowHalfOpen?: boolean; readonly localAddress?: string } = {},
): Promise<RawConnection> {
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen, ...from });
  let text = "";
  let isClosed = false;
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => (text += chunk));
  socket.on("error", () => undefined);
  socket.on("close", () => (isClosed = true));
  await until(() => !socket.connecting, { what: "a connection" });
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    received: () => text,
    isClosed: () => isClosed,
    async untilClosed() {
      await until(() => isClosed, { what: "the end of the connection", timeoutMs: 15_000 });
      return text;
    },
    untilAnswers: (count) =>
      until(
        () => {
          const answers = answersIn(text);
          return answers.length >= count && answers;
        },
        { what: `${count} answers` },
      ),
  };
}

/** Sends bytes and returns the answers, once the server has closed the connection. */
export async function exchange(port: number, bytes: string | Buffer): Promise<readonly RawAnswer[]> {
  const connection = await openRaw(port);
  connection.send(bytes);
  return answersIn(await connection.untilClosed());
}

/** Returns the complete answers at the start of a text, including interim ones (1xx). */
export function answersIn(text: string): readonly RawAnswer[] {
  const [, status, head = ""] = /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n/.exec(text) ?? [];
  if (status === undefined) return [];
  const headers = Object.fromEntries(
    head
      .split("\r\n")
      .filter(Boolean)
      .map((line) => {
        const [name = "", ...value] = line.split(": ");
        return [name.toLowerCase(), value.join(": ")];
      }),
  );
  const bodyAt = text.indexOf("\r\n\r\n") + 4;
  const length = Number(headers["content-length"] ?? 0);
  const body = text.slice(bodyAt, bodyAt + length);
  if (body.length < length) return [];
  return [
    { status: Number(status), headers, json: body === "" ? undefined : JSON.parse(body) },
    ...answersIn(text.slice(bodyAt + length)),
  ];
}
