import { randomUUID } from "node:crypto";
import { STATUS_CODES, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AppError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { errorBodyOf } from "./error-body.ts";
import { securityHeaders } from "./security-headers.ts";

/** Time for a client to read a refusal and close. */
const lingerMs = 1000;

/** An error of Node's parser or its timeouts. Its message may contain parts of the request. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes that were being parsed. */
  readonly rawPacket?: Buffer;
}

const refused = new WeakMap<ServerResponse, AppError>();

/** Returns the refusal that replaced the answer of a request whose body did not come. */
export function refusalIn(response: ServerResponse): AppError | undefined {
  return refused.get(response);
}

/**
 * Answers requests that never reach the application: not HTTP, too large a head, too slow. They get
 * an error body like every other, and their connection is closed. Node's own answer has an empty
 * body.
 */
export function answerClientErrors(
  server: Server,
  {
    log,
    countRefused,
    maxHeaderSize,
  }: {
    readonly log: Log | undefined;
    readonly countRefused: ((status: number) => void) | undefined;
    readonly maxHeaderSize: number;
  },
): void {
  const leaving = new WeakSet<Duplex>();
  server.on("clientError", (error: ClientError, socket) => {
    // Later input is parsed again, and fails again.
    if (leaving.has(socket)) return;
    if (error.code === "ECONNRESET" || !socket.writable || hasOtherAnswer(socket)) {
      socket.destroy();
      return;
    }
    leaving.add(socket);
    const refusal = refusalOf(error, maxHeaderSize);
    // The application counts a request once it has the head, even if the body does not come.
    const response = answerOn(socket);
    if (response === undefined) countRefused?.(refusal.status);
    else refused.set(response, refusal);
    const requestId = String(response?.getHeader("X-Request-Id") ?? randomUUID());
    const { remoteAddress: client } = socket as Socket;
    log?.info(
      { event: "request.refused", requestId, status: refusal.status, reason: error.code, client },
      "request refused",
    );
    socket.end(answerText(refusal, requestId));
    // An immediate close would give a client that is still sending a reset instead of the answer.
    const linger = setTimeout(() => socket.destroy(), lingerMs);
    socket.once("close", () => clearTimeout(linger));
  });
}

/**
 * Returns whether an earlier request on the connection still waits for its answer. The client would
 * take a refusal for that answer.
 */
function hasOtherAnswer(socket: Duplex): boolean {
  const response = answerOn(socket);
  return response !== undefined && (response.headersSent || response.req.complete);
}

/** Returns the response of a socket, as Node's own handler finds it. The types do not show it. */
function answerOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

function refusalOf({ code, rawPacket }: ClientError, maxHeaderSize: number): AppError {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return isTargetTooLong(rawPacket, maxHeaderSize)
        ? new AppError(
            "request.target_too_long",
            `The request target must not be larger than ${maxHeaderSize} bytes.`,
          )
        : new AppError(
            "request.headers_too_large",
            `The request's headers must not be larger than ${maxHeaderSize} bytes.`,
          );
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new AppError("request.too_large", "The request body has too large chunk extensions.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new AppError("request.timeout", "The request took too long to arrive.");
    case undefined:
    default:
      return new AppError("request.malformed", "The request is not valid HTTP.");
  }
}

/**
 * Returns whether the request line is too long. It can only tell when the line came in one piece.
 */
function isTargetTooLong(packet: Buffer | undefined, maxHeaderSize: number): boolean {
  const line = packet?.subarray(0, packet.indexOf("\n") + 1 || packet.length);
  return line !== undefined && line.length > maxHeaderSize && /^[A-Z]+ /.test(line.toString("latin1", 0, 20));
}

function answerText(refusal: AppError, requestId: string): string {
  const { status } = refusal;
  const body = JSON.stringify(errorBodyOf(refusal));
  const headers = {
    ...securityHeaders(),
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": String(Buffer.byteLength(body)),
    "X-Request-Id": requestId,
    Date: new Date().toUTCString(),
    Connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`;
}
