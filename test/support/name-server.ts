import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIP } from "node:net";

/** The answer for a name: its addresses, a failure, or none at all. */
export type Told = readonly string[] | "NXDOMAIN" | "NODATA" | "SERVFAIL" | "silence";

/** A DNS server on 127.0.0.1, over UDP. */
export interface NameServer {
  /** Address and port in the form for a resolver. */
  readonly address: string;
  /**
   * Queries in the order of arrival, such as "A a.example" and "AAAA a.example", including repeated
   * ones.
   */
  readonly asked: readonly string[];
  /** Returns the answer to a query; NXDOMAIN by default. */
  answer: (name: string, type: "A" | "AAAA") => Told;
  ttlSeconds: number;
  close(): void;
}

const codes = { NXDOMAIN: 3, NODATA: 0, SERVFAIL: 2 } as const;

export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (question, { port, address }) => {
    const { name, type, end } = questionIn(question);
    asked.push(`${type} ${name}`);
    const told = server.answer(name, type);
    if (told === "silence") return;
    const addresses =
      typeof told === "string" ? [] : told.filter((item) => isIP(item) === (type === "A" ? 4 : 6));
    const head = Buffer.alloc(12);
    question.copy(head, 0, 0, 2);
    // An answer (0x8000), recursion desired and available (0x0180).
    head.writeUInt16BE(0x8180 | (typeof told === "string" ? codes[told] : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    const records = addresses.map((item) => recordOf(item, server.ttlSeconds));
    socket.send(Buffer.concat([head, question.subarray(12, end), ...records]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const server: NameServer = {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    answer: () => "NXDOMAIN",
    ttlSeconds: 30,
    close: () => void socket.close(),
  };
  return server;
}

function questionIn(message: Buffer): { name: string; type: "A" | "AAAA"; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), type: message.readUInt16BE(at + 1) === 1 ? "A" : "AAAA", end: at + 5 };
}

function recordOf(address: string, ttlSeconds: number): Buffer {
  const isFour = isIP(address) === 4;
  const bytes = isFour ? address.split(".").map(Number) : bytesOfSix(address);
  const head = Buffer.alloc(12);
  // The name is that of the question, at byte 12.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isFour ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([head, Buffer.from(bytes)]);
}

function bytesOfSix(address: string): readonly number[] {
  const [before = "", after = ""] = address.split("::");
  const [start, end] = [bytesOfGroups(before), bytesOfGroups(after)];
  return [...start, ...Array<number>(16 - start.length - end.length).fill(0), ...end];
}

function bytesOfGroups(text: string): readonly number[] {
  const groups = text === "" ? [] : text.split(":").map((group) => parseInt(group, 16));
  return groups.flatMap((group) => [group >> 8, group & 255]);
}
