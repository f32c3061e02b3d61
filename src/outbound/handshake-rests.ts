import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { setBounded } from "../kit/bounded-map.ts";
import { NoTurnError } from "./outbound-errors.ts";
import { bytesBelowTls, limitOverhead } from "./tls-overhead.ts";

/** Rests of users whose receivers make TLS handshakes costly. */
export interface HandshakeRests {
  /** Waits until the user may begin a handshake. Returns false when that takes too long. */
  pass(userId: number): Promise<boolean>;
  /** Watches the handshake of a new connection. */
  watch(userId: number, socket: Duplex): void;
}

interface Handshake {
  readonly userId: number;
  /** False for a connection that is not made yet, whose failure costs nothing. */
  hasBegun: boolean;
  /** Bytes read below TLS until the last note. */
  bytes: number;
  /** End of the rest that its success ends; infinite for none. */
  restsUntilMs?: number;
}

interface Note {
  /** CPU time since the note before. */
  readonly tookMs: number;
  /** Handshakes that have read since then. */
  readonly readers: readonly Handshake[];
}

/** CPU time of a failed handshake in ms beyond which its user rests. An ordinary one takes 2. */
const mostMs = 50;
/** Length of a rest, in times of that CPU time: handshakes of a user get a tenth of the thread. */
const restTimes = 9;
const longestRestMs = 60_000;
const mostResting = 10_000;
/** CPU time that a connection with too much of TLS itself counts as. */
const excessMs = 100;
/** Time between two notes of the CPU time while handshakes are in progress. */
const noteMs = 5;

/**
 * Creates the rests. OpenSSL takes 500 ms for a chain of 60 false certificates, and Node.js has no
 * limit for that. It does so in the thread that sends the webhooks of all users.
 *
 * The CPU time of a handshake is that since the last note or the end of another handshake. Other
 * work may be in it, so a handshake that succeeds ends its rest. One counts when it fails, and also
 * when it has read meanwhile: a receiver may withhold the end. A costly one also ends the others of
 * its user, which would cost as much.
 *
 * @param patienceMs Limit of the wait for the end of a rest.
 * @param cpuMs Returns the CPU time of this process, in ms.
 * @param now Monotonic clock, in ms.
 */
export function createHandshakeRests({
  patienceMs = 2_000,
  cpuMs = cpuTimeMs,
  now = () => performance.now(),
}: {
  readonly patienceMs?: number;
  readonly cpuMs?: () => number;
  readonly now?: () => number;
} = {}): HandshakeRests {
  /** End of each user's rest. */
  const untilMs = new Map<number, number>();
  const inProgress = new Map<Duplex, Handshake>();
  let notedMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function note(): Note {
    const before = notedMs;
    notedMs = cpuMs();
    const readers: Handshake[] = [];
    for (const [socket, handshake] of inProgress) {
      const bytes = bytesBelowTls(socket);
      if (bytes > handshake.bytes) readers.push(handshake);
      handshake.bytes = bytes;
    }
    return { tookMs: notedMs - before, readers };
  }

  function rest({ tookMs, readers }: Note): void {
    if (tookMs <= mostMs) return;
    const endsAtMs = now() + Math.min(restTimes * tookMs, longestRestMs);
    for (const handshake of readers) {
      const { userId } = handshake;
      // The success of one says nothing of another of its user.
      const isOnly = readers.every((other) => other === handshake || other.userId !== userId);
      handshake.restsUntilMs = isOnly ? endsAtMs : Infinity;
      setBounded(untilMs, [userId, endsAtMs], mostResting);
    }
    for (const [socket, { userId, restsUntilMs }] of inProgress)
      if (restsUntilMs === undefined && untilMs.get(userId) === endsAtMs)
        socket.destroy(new NoTurnError("handshake"));
  }

  function end(socket: Duplex, isFailed: boolean): void {
    const handshake = inProgress.get(socket);
    if (handshake === undefined) return;
    const { userId, hasBegun, restsUntilMs } = handshake;
    inProgress.delete(socket);
    const { tookMs, readers } = note();
    rest({ tookMs, readers: isFailed && hasBegun ? [handshake, ...readers] : readers });
    if (!isFailed && restsUntilMs !== undefined && untilMs.get(userId) === restsUntilMs)
      untilMs.delete(userId);
    if (inProgress.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    async pass(userId) {
      const waitMs = (untilMs.get(userId) ?? 0) - now();
      if (waitMs > 0) await sleep(Math.min(waitMs, patienceMs));
      return waitMs <= patienceMs;
    },
    watch(userId, socket) {
      if (timer === undefined) {
        note();
        timer = setInterval(() => rest(note()), noteMs).unref();
      }
      const handshake: Handshake = { userId, hasBegun: false, bytes: 0 };
      inProgress.set(socket, handshake);
      limitOverhead(socket, () => rest({ tookMs: excessMs, readers: [handshake] }));
      socket.once("connect", () => (handshake.hasBegun = true));
      // An error comes before the reads of other connections, and `close` after them.
      for (const event of ["secureConnect", "error", "close"])
        socket.once(event, () => end(socket, event !== "secureConnect"));
    },
  };
}

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
