import { connect } from "node:net";

/** A client that has read the head of its answer and reads no more. */
export interface SlowReader {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  leave(): void;
}

/** Sends a request, and reads the first KB of its answer. */
export function openSlowReader(
  port: number,
  request: string,
  { headers = {}, body = "" }: { readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<SlowReader> {
  return new Promise((resolve, reject) => {
    let received = "";
    const buffer = Buffer.alloc(4096);
    const socket = connect({
      port,
      host: "127.0.0.1",
      onread: {
        buffer,
        callback(length) {
          received += buffer.toString("latin1", 0, length);
          const end = received.indexOf("\r\n\r\n");
          if (end < 0) return true;
          const [status = "", ...lines] = received.slice(0, end).split("\r\n");
          resolve({
            status: Number(status.split(" ")[1]),
            headers: Object.fromEntries(
              lines.map((line) => {
                const [name = "", ...value] = line.split(": ");
                return [name.toLowerCase(), value.join(": ")];
              }),
            ),
            leave: () => socket.destroy(),
          });
          return false;
        },
      },
    });
    socket.on("error", reject);
    const lines = Object.entries({ Host: "x", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    socket.write(`${request} HTTP/1.1\r\n${lines.join("")}${length}\r\n${body}`);
  });
}
