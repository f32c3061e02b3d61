/**
 * One message of a PostgreSQL client, classified by how a server with a single backend handles it.
 */
export interface Message {
  readonly kind:
    | "startup"
    /** Asks for TLS or GSS; the answer is one byte. */
    | "encryption"
    /** A message of the extended protocol whose answer may wait for the end of the batch. */
    | "part"
    | "flush"
    /** Sync, a simple query or a function call: the backend answers and is free. */
    | "end"
    | "terminate"
    /**
     * Cancel requests, which a backend on this thread cannot receive, and bytes of another
     * protocol.
     */
    | "unreadable";
  readonly bytes: Buffer;
}

const protocolVersion3 = 3;
const sslRequest = 80877103;
const gssRequest = 80877104;
/** Most bytes of a startup message, as in PostgreSQL. */
const maxStartupBytes = 10_000;
const kinds: Readonly<Record<string, Message["kind"]>> = {
  Q: "end",
  S: "end",
  F: "end",
  H: "flush",
  X: "terminate",
};

/**
 * Splits received bytes into whole messages and a rest. Format: PostgreSQL manual, "Message
 * Formats".
 */
export function readMessages(
  received: Buffer,
  isStarted: boolean,
): { readonly messages: readonly Message[]; readonly rest: Buffer } {
  const messages: Message[] = [];
  let rest = received;
  let hasType = isStarted;
  for (;;) {
    const offset = hasType ? 1 : 0;
    if (rest.length < offset + 4) return { messages, rest };
    const length = rest.readInt32BE(offset);
    if (length < 4 || (!hasType && (length < 8 || length > maxStartupBytes))) {
      messages.push({ kind: "unreadable", bytes: rest });
      return { messages, rest: Buffer.alloc(0) };
    }
    if (rest.length < offset + length) return { messages, rest };
    const bytes = rest.subarray(0, offset + length);
    rest = rest.subarray(offset + length);
    const kind = hasType ? (kinds[String.fromCharCode(bytes[0] ?? 0)] ?? "part") : startupKind(bytes);
    messages.push({ kind, bytes });
    if (kind === "startup") hasType = true;
  }
}

function startupKind(bytes: Buffer): Message["kind"] {
  const code = bytes.readInt32BE(4);
  if (code === sslRequest || code === gssRequest) return "encryption";
  return code >> 16 === protocolVersion3 ? "startup" : "unreadable";
}

/** Returns a fatal ErrorResponse, after which the connection ends. */
export function errorResponse(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
