import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attacker, Question } from "./attacker.ts";
import { prefix, type Scene } from "./scene.ts";

/** An attack by one hostile client, which continues until it is stopped. */
export interface Attack {
  readonly name: string;
  /** Writes the records that the attack needs, past the API. `clearUp` removes them. */
  readonly prepare?: (scene: Scene) => Promise<void>;
  /** Runs until `signal` aborts. */
  readonly run: (attacker: Attacker, signal: AbortSignal) => Promise<void>;
}

export const notes = `${prefix}/resources/notes`;
let number = 0;
export const fresh = (fields: object): string =>
  JSON.stringify({ reference: `eve-${process.pid}-${(number += 1)}`, amount: "1", ...fields });

export const megabyte = "a".repeat(999_000);

/** Runs `width` clients that repeat the same action. */
export async function together(
  width: number,
  signal: AbortSignal,
  act: () => Promise<unknown>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (!signal.aborted) {
        await act();
        // A client that is refused at once retries as fast as it can on a shared machine.
        await sleep(1);
      }
    }),
  );
}

/** Returns the run of an attack by `width` clients that each repeat a request. */
export function sends(width: number, question: () => Question): Attack["run"] {
  return (attacker, signal) => together(width, signal, () => attacker.send(question()));
}

/** Keeps `width` connections open until `signal` aborts, and calls the function with each. */
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

/** SQL of the attacker's id. The attacker owns the records that `prepare` makes. */
export const attackerId = "(SELECT id FROM svc.users WHERE name = 'eve')";

export async function removeRecords(scene: Scene): Promise<void> {
  await scene.sql("DELETE FROM notes WHERE user_id IN (SELECT id FROM svc.users WHERE name LIKE 'eve%')");
}

/** Makes records without events, so that the relay has no part in the measurement. */
export async function makeRecords(scene: Scene, statement: string): Promise<void> {
  await removeRecords(scene);
  await scene.sql("ALTER TABLE notes DISABLE TRIGGER USER");
  await scene.sql(statement);
  await scene.sql("ALTER TABLE notes ENABLE TRIGGER USER");
}

/** Removes the records of an attack, so that the next one is measured separately. */
export async function clearUp(scene: Scene): Promise<void> {
  await scene.sql("TRUNCATE comments");
  await removeRecords(scene);
  await scene.sql("DELETE FROM svc.events");
}
