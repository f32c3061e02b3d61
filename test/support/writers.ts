import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { messageOf } from "../../src/kit/errors.ts";
import { call, type Answer } from "./http.ts";

/**
 * A writer's knowledge of a change: `acknowledged` is committed, `refused` is certainly not (rolled
 * back, or never received), and `unanswered` may be either.
 */
export interface TriedChange {
  /**
   * `<trigger> <label> <number>`; the last two are the text of the record. Never the same twice.
   */
  readonly change: string;
  readonly outcome: "acknowledged" | "refused" | "unanswered";
}

/**
 * Programs that write to the table `notes` without a pause, through the API and by SQL, until
 * stopped.
 */
export interface Writers {
  /** Start of every later text. */
  label: string;
  readonly tried: readonly TriedChange[];
  /** Number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Answers that no server may give. */
  readonly faults: readonly string[];
  /** Returns the number of changes acknowledged since the start. */
  acknowledged(): number;
  /** Returns the number in the last text. */
  lastNumber(): number;
  stop(): Promise<void>;
}

interface WritersOptions {
  /** URL of the API, with the route prefix. */
  readonly baseUrl: string;
  readonly token: string;
  readonly databaseUrl: string;
  /** Owners of the records that are written by SQL, in turn. */
  readonly ownerIds: readonly number[];
  readonly label: string;
  readonly apiWriters?: number;
  readonly sqlWriters?: number;
  /**
   * Pause between two rounds of one writer, so that the load is the same on a fast machine.
   * Default: 120.
   */
  readonly breatherMs?: number;
}

/**
 * Changes that one round of a writer tries on average: the API deletes every second record, a
 * transaction makes four changes.
 */
export const changesPerRound = { api: 2.5, sql: 4 } as const;

const expected = new Set([200, 201, 204, 503]);

/** Starts the writers. */
export function startWriters({
  baseUrl,
  token,
  databaseUrl,
  ownerIds,
  label,
  apiWriters = 2,
  sqlWriters = 2,
  breatherMs = 120,
}: WritersOptions): Writers {
  const tried: TriedChange[] = [];
  const statuses = new Map<number, number>();
  const faults: string[] = [];
  const stopping = new AbortController();
  const { port, pathname } = new URL(baseUrl);
  let count = 0;
  let acknowledged = 0;

  const breather = (): Promise<void> => sleep(breatherMs);
  const nextText = (): string => `${writers.label} ${++count}`;
  const note = (change: string, outcome: TriedChange["outcome"]): void => {
    tried.push({ change, outcome });
    if (outcome === "acknowledged") acknowledged += 1;
  };

  async function request(
    method: string,
    path: string,
    text?: string,
  ): Promise<Answer | "refused" | undefined> {
    try {
      const answer = await call(Number(port), `${pathname}/resources/notes${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        ...(text === undefined ? {} : { body: JSON.stringify({ text }) }),
      });
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (!expected.has(answer.status)) faults.push(`${method} ${answer.status} ${answer.text}`);
      return answer;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ECONNREFUSED" ? "refused" : undefined;
    }
  }

  /** Makes one change through the API, and returns the answer when it was made. */
  async function tryChange(
    method: string,
    path: string,
    change: string,
    text?: string,
  ): Promise<Answer | undefined> {
    const answer = await request(method, path, text);
    if (answer === "refused" || answer === undefined || answer.status >= 400) {
      note(change, answer === "refused" ? "refused" : "unanswered");
      return undefined;
    }
    note(change, "acknowledged");
    return answer;
  }

  async function writeThroughApi(): Promise<void> {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      await breather();
      const [first, second] = [nextText(), nextText()];
      const created = await tryChange("POST", "", `on_create ${first}`, first);
      if (created === undefined) continue;
      const { id } = created.json as { readonly id: number };
      const updated = await tryChange("PUT", `/${id}`, `on_update ${second}`, second);
      // The state of a record is unknown after an update without an answer.
      if (updated !== undefined && round % 2 === 0)
        await tryChange("DELETE", `/${id}`, `on_delete ${second}`);
    }
  }

  async function writePastApi(): Promise<void> {
    for (let round = 0; !stopping.signal.aborted;) {
      const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2_000 });
      client.on("error", () => undefined);
      try {
        await client.connect();
        for (; !stopping.signal.aborted; round += 1) await transaction(client, round);
      } catch {
        // The database is down, which the journal of the ledger takes into account.
      } finally {
        await client.end().catch(() => undefined);
      }
      await breather();
    }
  }

  async function transaction(client: Client, round: number): Promise<void> {
    await breather();
    const ownerId = ownerIds[round % ownerIds.length];
    const [first, second, third] = [nextText(), nextText(), nextText()];
    const changes = [
      `on_create ${first}`,
      `on_create ${second}`,
      `on_update ${third}`,
      `on_delete ${second}`,
    ];
    const settle = (outcome: TriedChange["outcome"]): void => changes.forEach((made) => note(made, outcome));
    const isKept = round % 4 !== 3;
    try {
      await client.query("BEGIN");
      const insert = "INSERT INTO notes (text, user_id) VALUES ($1, $3), ($2, $3)";
      await client.query(insert, [first, second, ownerId]);
      await client.query("UPDATE notes SET text = $2 WHERE text = $1", [first, third]);
      await client.query("DELETE FROM notes WHERE text = $1", [second]);
    } catch (error) {
      settle("refused");
      throw error;
    }
    try {
      await client.query(isKept ? "COMMIT" : "ROLLBACK");
      settle(isKept ? "acknowledged" : "refused");
    } catch (error) {
      settle(isKept ? "unanswered" : "refused");
      throw error;
    }
  }

  const writers: Writers = {
    label,
    tried,
    statuses,
    faults,
    acknowledged: () => acknowledged,
    lastNumber: () => count,
    async stop() {
      stopping.abort();
      await done;
    },
  };
  const done = Promise.all([
    ...Array.from({ length: apiWriters }, writeThroughApi),
    ...Array.from({ length: sqlWriters }, writePastApi),
  ]).catch((error: unknown) => void faults.push(messageOf(error)));
  return writers;
}
