import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { admin, createProgram, writeConfiguration } from "../../test/support/program.ts";
import { startPeer, type Peer } from "../peer.ts";
import { containerBytes, createMemoryLimit, peakBytes, resetPeak } from "../memory-limit.ts";
import type { VictimJob, VictimReport } from "./victim.ts";

/**
 * `svc api` in the memory of a container, with an ordinary user who works and an attacker who is an
 * ordinary user too.
 */
export interface Scene {
  readonly port: number;
  /** Token of the attacker. */
  readonly token: string;
  /** Runs the other user for a while, and returns its report. */
  observe(durationMs: number): Promise<VictimReport>;
  /** Waits until ten requests in a row are answered quickly, and returns the duration. */
  settle(): Promise<number>;
  /**
   * Does the same for the attacker's requests, which wait for some time after the reads of an
   * attack.
   */
  settleAttacker(): Promise<void>;
  /** Returns how many of the created records are missing in the database. */
  countLost(created: readonly string[]): Promise<number>;
  /** Runs a statement on the database, as an operator. */
  sql(text: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Returns how the program ended, its memory and its last output; undefined while it runs. */
  death(): string | undefined;
  /** Returns the kernel's figures of its memory, for people. */
  memoryUsage(): string;
  /** Returns the errors that the program has logged so far, one a line. */
  log(): string;
  peakBytes(): number | undefined;
  resetPeak(): void;
  /** Restarts the program when it has died. */
  revive(): Promise<void>;
  readonly limitKind: string;
  dispose(): Promise<void>;
}

export const prefix = "/svc-api";

const ratePerSecond = 50;

const notes = `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  reference: { type: String, length: 100, unique: true }
  amount: { type: Decimal, precision: 12, scale: 2 }
  meta: { type: Json, optional: true }
  text: { type: String, optional: true, length: 1000000 }
  user_id: { type: Int, index: true }
  created_at: { type: DateTime, default: now }
triggers: [on_create]
createRules:
  reference: required|string|max:100|unique:notes,reference
  amount: required|numeric|min:0
  meta: nullable
  text: nullable|string
ownerColumn: user_id
searchableColumns: [reference, text]
includes: [comments]
`;

const comments = `
name: comments
model: Comment
fields:
  id: { type: Int, id: true }
  text: { type: String }
  note_id: { type: Int, references: notes.id, as: note, index: true }
triggers: [on_delete]
access: { read: everyone }
`;

/** Starts the service and the users on existing servers. The database must be empty. */
export async function createScene({
  databaseUrl,
  amqpUrl,
}: {
  readonly databaseUrl: string;
  readonly amqpUrl: string;
}): Promise<Scene> {
  const configuration = writeConfiguration({
    service: "",
    resources: { "notes.yaml": notes, "comments.yaml": comments },
  });
  const env = {
    ...configuration.env,
    DATABASE_URL: databaseUrl,
    AMQP_URL: amqpUrl,
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    SVC_LOG_LEVEL: "error",
  };
  const limit = createMemoryLimit(containerBytes);
  const client = new Client({ connectionString: databaseUrl });
  const program = await createProgram({ name: "api", env, commandOf: (args) => limit.commandOf(args) });
  const victim: Peer<VictimJob, VictimReport> = startPeer("attacks/victim.ts");

  async function dispose(): Promise<void> {
    victim.end();
    await program.dispose();
    await client.end();
    limit.remove();
    configuration.dispose();
  }

  async function userNamed(name: string): Promise<string> {
    const { token } = await admin(["create-user", "--name", name, "--email", `${name}@example.com`], env);
    return String(token);
  }

  try {
    await client.connect();
    await admin(["migrate"], env);
    const [ada, eve] = [await userNamed("ada"), await userNamed("eve")];
    await program.start();
    const port = Number(new URL(program.origin).port);
    return {
      port,
      token: eve,
      observe: (durationMs) => victim.ask({ port, prefix, token: ada, durationMs, ratePerSecond }),
      async settle() {
        const startedAt = performance.now();
        await untilQuick(`${program.origin}${prefix}/whoami`, ada);
        return performance.now() - startedAt;
      },
      settleAttacker: () => untilQuick(`${program.origin}${prefix}/whoami`, eve),
      async countLost(created) {
        const { rows } = await client.query<{ there: string }>(
          "SELECT count(*) AS there FROM notes WHERE reference = ANY($1)",
          [created],
        );
        return created.length - Number(rows[0]?.there);
      },
      async sql(text, values = []) {
        const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
        return rows;
      },
      death: () =>
        program.isRunning() ? undefined : [program.state(), limit.usage(), program.output()].join("\n"),
      memoryUsage: () => limit.usage(),
      log: () => program.written(),
      peakBytes: () => peakBytes(program.pid() ?? 0),
      resetPeak: () => resetPeak(program.pid() ?? 0),
      async revive() {
        if (program.isRunning()) return;
        await program.start();
      },
      limitKind: limit.kind,
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Waits for ten answers in a row within 100 ms each. Gives up after a minute. */
async function untilQuick(url: string, token: string): Promise<void> {
  const endsAt = performance.now() + 60_000;
  for (let quick = 0; quick < 10 && performance.now() < endsAt;) {
    const askedAt = performance.now();
    const isFine = await fetch(url, { headers: { Authorization: `Bearer ${token}` } }).then(
      ({ status }) => status === 200,
      () => false,
    );
    quick = isFine && performance.now() - askedAt < 100 ? quick + 1 : 0;
    await sleep(20);
  }
}
