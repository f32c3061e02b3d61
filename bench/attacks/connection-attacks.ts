import type { Attacker } from "./attacker.ts";
import { type Attack, fresh, holdConnections, notes, removeRecords, together } from "./attack.ts";
import { prefix } from "./scene.ts";

/** Sends the same bytes repeatedly, on `width` connections of a separate client. */
const flood = (attacker: Attacker, width: number, bytes: string, signal: AbortSignal): Promise<void> =>
  holdConnections(attacker, {
    width,
    localAddress: "127.0.0.2",
    greet: (socket) => {
      socket.resume();
      const more = setInterval(() => {
        if (socket.writableLength < bytes.length) socket.write(bytes);
      }, 20);
      socket.once("close", () => clearInterval(more));
    },
    signal,
  });

/** Attacks by the data on a connection, instead of by requests. */
export const connectionAttacks: readonly Attack[] = [
  {
    name: "requests of 18 bytes behind each other, without a token",
    run: (attacker, signal) => flood(attacker, 4, "GET /a HTTP/1.1\r\n\r\n".repeat(3000), signal),
  },
  {
    name: "tokens that do not exist, behind each other",
    run: (attacker, signal) => {
      const token = `svc_${"y".repeat(43)}`;
      return flood(attacker, 3, attacker.head({ method: "GET", path: notes, token }).repeat(200), signal);
    },
  },
  {
    name: "bodies of 1 MB in chunks of a byte",
    prepare: removeRecords,
    run: (attacker, signal) => {
      const head = attacker.head({ method: "POST", path: notes }).trimEnd();
      const type = "Content-Type: application/json\r\nTransfer-Encoding: chunked";
      const chunks = fresh({ text: "a".repeat(900_000) }).replaceAll(/./g, (byte) => `1\r\n${byte}\r\n`);
      return flood(attacker, 6, `${head}\r\n${type}\r\n\r\n${chunks}0\r\n\r\n`, signal);
    },
  },
  {
    name: "1,800 parameters that mean nothing where they are sent",
    run: (attacker, signal) => {
      const path = `${prefix}/whoami?${Array.from({ length: 1_800 }, (_, i) => `sort[${i.toString(36)}`).join("&")}`;
      return together(50, signal, () => attacker.send({ method: "GET", path }));
    },
  },
];
