import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attacker } from "./attacker.ts";
import { prefix, type Scene } from "./scene.ts";

/** Something that one hostile client does for as long as it is let. */
export interface Attack {
  readonly name: string;
  /** What has to be in the database before, put there by other programs; and takes it out again. */
  readonly prepare?: (scene: Scene) => Promise<void>;
  /** Goes on until `signal` aborts. */
  readonly run: (attacker: Attacker, signal: AbortSignal) => Promise<void>;
}

export const notes = `${prefix}/resources/notes`;
let number = 0;
export const fresh = (fields: object): string =>
  JSON.stringify({ reference: `eve-${process.pid}-${(number += 1)}`, amount: "1", ...fields });

export const megabyte = "a".repeat(999_000);

/** `width` clients that do the same again and again. */
export async function together(
  width: number,
  signal: AbortSignal,
  act: () => Promise<unknown>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (!signal.aborted) {
        await act();
        // One that is refused at once tries again as quickly as a client can that has to share this
        // machine.
        await sleep(1);
      }
    }),
  );
}

/**
 * Opens connections until `signal` aborts, as many at a time as `width`, and does with each what is
 * given.
 */
export async function holdConnections(
  attacker: Attacker,
  {
    width,
    localAddress,
    greet,
    signal,
  }: {
    readonly width: number;
    readonly localAddress: string;
    readonly greet: (socket: Socket) => void;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const open = new Set<Socket>();
  while (!signal.aborted) {
    for (let i = 0; open.size < width && i < 200; i++) {
      const socket = connect({ host: "127.0.0.1", port: attacker.port, localAddress });
      open.add(socket);
      attacker.count("connections");
      socket.on("connect", () => greet(socket));
      socket.on("error", () => undefined);
      socket.on("close", () => open.delete(socket));
    }
    await sleep(20);
  }
  for (const socket of open) socket.destroy();
}

/** An id of the attacker, who owns the records that `prepare` makes. */
export const attackerId = "(SELECT id FROM svc.users WHERE name = 'eve')";

export async function removeRecords(scene: Scene): Promise<void> {
  await scene.sql(`DELETE FROM notes WHERE user_id = ${attackerId}`);
}

/** Without events: what those do to the relay is another matter. */
export async function makeRecords(scene: Scene, statement: string): Promise<void> {
  await removeRecords(scene);
  await scene.sql("ALTER TABLE notes DISABLE TRIGGER USER");
  await scene.sql(statement);
  await scene.sql("ALTER TABLE notes ENABLE TRIGGER USER");
}

/** Leaves nothing of an attack behind, so that the next one is measured by itself. */
export async function clearUp(scene: Scene): Promise<void> {
  await scene.sql("TRUNCATE comments");
  await removeRecords(scene);
  await scene.sql("DELETE FROM svc.events");
}
