import { expect } from "chai";
import type { Pool } from "pg";
import { reply, type ReceivedRequest, type TestReceiver } from "./receiver.ts";
import type { TriedChange } from "./writers.ts";

/**
 * Records every committed change of `notes` beside the service's own capture, by a trigger of the
 * test in the writer's transaction.
 */
export const journalSql = `
  CREATE TABLE journal (change text, owner_id int);
  CREATE FUNCTION write_journal() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    note record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    trigger text := CASE TG_OP WHEN 'INSERT' THEN 'on_create' WHEN 'UPDATE' THEN 'on_update' ELSE 'on_delete' END;
  BEGIN
    INSERT INTO journal VALUES (trigger || ' ' || note.text, note.user_id);
    RETURN NULL;
  END $$;
  CREATE TRIGGER write_journal AFTER INSERT OR UPDATE OR DELETE ON notes FOR EACH ROW EXECUTE FUNCTION write_journal()`;

/** A subscription of the test, identified by the path of its URL. */
export interface Audience {
  readonly path: string;
  readonly subscriptionId: number;
  readonly triggers: readonly string[];
  /** Owner of the records that it gets; undefined for all records. */
  readonly ownerId: number | undefined;
}

/** One POST that arrived. */
export interface Arrival {
  readonly path: string;
  /** The change, as in the journal. */
  readonly change: string;
  /** `X-Service-Delivery`. */
  readonly delivery: string;
  readonly body: Buffer;
  /** Whether it was answered with 204. */
  isAccepted: boolean;
}

export interface Arrivals {
  readonly all: readonly Arrival[];
  /** Leaves arrivals that match without an answer from now on. Resolves with the first one. */
  hold(isWanted: (arrival: Arrival) => boolean): Promise<Arrival>;
  /** Answers the held arrivals, and holds none any more. */
  release(): void;
}

/**
 * Records the arrivals at a receiver. It answers 204, but 503 to every twentieth request and 500 to
 * each one for `/broken`.
 */
export function noteArrivals(receiver: TestReceiver): Arrivals {
  const all: Arrival[] = [];
  const held: (() => void)[] = [];
  let onHold: ((arrival: Arrival, answer: () => void) => boolean) | undefined;
  receiver.answer = (request, response) => {
    const arrival = arrivalOf(request);
    all.push(arrival);
    const answer = (status: number): void => {
      response.once("finish", () => (arrival.isAccepted = status === 204));
      reply(response, { status });
    };
    if (onHold?.(arrival, () => answer(204)) === true) return;
    answer(arrival.path === "/broken" ? 500 : all.length % 20 === 0 ? 503 : 204);
  };
  return {
    all,
    hold(isWanted) {
      return new Promise((resolve) => {
        onHold = (arrival, answer) => {
          if (!isWanted(arrival)) return false;
          held.push(answer);
          resolve(arrival);
          return true;
        };
      });
    },
    release() {
      onHold = undefined;
      for (const answer of held.splice(0)) answer();
    },
  };
}

function arrivalOf({ path, headers, rawBody }: ReceivedRequest): Arrival {
  const { event, data } = JSON.parse(rawBody.toString()) as {
    readonly event: string;
    readonly data: { readonly text: string };
  };
  const delivery = String(headers["x-service-delivery"]);
  return { path, change: `${event} ${data.text}`, delivery, body: rawBody, isAccepted: false };
}

/** Outcome of each committed change of one label for each subscription that matches it. */
export interface Ledger {
  readonly label: string;
  readonly changes: number;
  /** Accepted by the receiver once. */
  readonly once: number;
  /** Accepted more than once. */
  readonly duplicated: number;
  /** Never accepted; the row of the delivery gives a reason. */
  readonly explained: readonly string[];
  /** Never accepted, without a reason. */
  readonly lost: readonly string[];
  /** Arrived without a commit, or at a subscription that does not match. */
  readonly phantom: readonly string[];
  /** Changes without an event, with more than one, or events without a change. */
  readonly misrecorded: readonly string[];
  /** Pairs that arrived under two delivery ids, or with different bytes. */
  readonly altered: readonly string[];
  /** Acknowledged to the writer but missing in the database, or refused but present. */
  readonly broken: readonly string[];
  /** Number of changes without an answer, and number of those that were committed. */
  readonly unanswered: { readonly all: number; readonly committed: number };
}

/** Returns whether every event is fanned out and no delivery is under way. */
export async function isQuiet(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ readonly open: number }>(
    `SELECT (SELECT count(*) FROM svc.outbox)::int
      + (SELECT count(*) FROM svc.deliveries WHERE status IN ('pending', 'retrying'))::int AS open`,
  );
  return rows[0]?.open === 0;
}

/** Closes the books of one label. Everything must be quiet. */
export async function readLedger({
  pool,
  label,
  audiences,
  arrivals,
  tried,
}: {
  readonly pool: Pool;
  readonly label: string;
  readonly audiences: readonly Audience[];
  readonly arrivals: readonly Arrival[];
  readonly tried: readonly TriedChange[];
}): Promise<Ledger> {
  const isOurs = ({ change }: { readonly change: string }): boolean => change.split(" ")[1] === label;
  const journal = (await pool.query<JournalRow>(journalText)).rows.filter(isOurs);
  const events = (await pool.query<EventRow>(eventsText)).rows.filter(isOurs);
  const deliveries = (await pool.query<DeliveryRow>(deliveriesText)).rows.filter(isOurs);

  const committed = new Set(journal.map(({ change }) => change));
  const recorded = new Map(events.map(({ change, count }) => [change, count]));
  const reasonOf = new Map(
    deliveries.map(({ change, subscriptionId, reason }) => [`${subscriptionId} ${change}`, reason]),
  );
  const arrived = new Map<string, Arrival[]>();
  for (const arrival of arrivals.filter(isOurs)) {
    const pair = `${arrival.path} ${arrival.change}`;
    arrived.set(pair, [...(arrived.get(pair) ?? []), arrival]);
  }

  const due = new Set<string>();
  const counts = { once: 0, duplicated: 0 };
  const explained: string[] = [];
  const lost: string[] = [];
  for (const { change, ownerId } of journal) {
    for (const audience of audiences.filter((one) => matches(one, change, ownerId))) {
      const pair = `${audience.path} ${change}`;
      due.add(pair);
      const accepted = (arrived.get(pair) ?? []).filter(({ isAccepted }) => isAccepted).length;
      const reason = reasonOf.get(`${audience.subscriptionId} ${change}`);
      if (accepted === 1) counts.once += 1;
      else if (accepted > 1) counts.duplicated += 1;
      else if (reason) explained.push(`${pair}: ${reason}`);
      else lost.push(pair);
    }
  }
  const isBroken = ({ change, outcome }: TriedChange): boolean =>
    outcome !== "unanswered" && committed.has(change) !== (outcome === "acknowledged");
  const unanswered = tried.filter((one) => isOurs(one) && one.outcome === "unanswered");
  return {
    label,
    changes: committed.size,
    ...counts,
    explained,
    lost,
    phantom: [...arrived.keys()].filter((pair) => !due.has(pair)),
    misrecorded: [...new Set([...committed, ...recorded.keys()])].filter(
      (change) => !committed.has(change) || recorded.get(change) !== 1,
    ),
    altered: [...arrived].flatMap(([pair, [first, ...others]]) =>
      others.every(({ delivery, body }) => delivery === first?.delivery && body.equals(first.body))
        ? []
        : [pair],
    ),
    broken: tried
      .filter((one) => isOurs(one) && isBroken(one))
      .map(({ change, outcome }) => `${outcome}: ${change}`),
    unanswered: {
      all: unanswered.length,
      committed: unanswered.filter(({ change }) => committed.has(change)).length,
    },
  };
}

/**
 * Expects nothing lost or invented, and failed deliveries only of the receiver that always fails.
 */
export function expectClean(ledger: Ledger): void {
  const { label, lost, phantom, misrecorded, altered, broken } = ledger;
  const unexplained = ledger.explained.filter((line) => !line.startsWith("/broken "));
  const none: readonly string[] = [];
  expect({ lost, phantom, misrecorded, altered, broken, unexplained }, label).to.deep.equal({
    lost: none,
    phantom: none,
    misrecorded: none,
    altered: none,
    broken: none,
    unexplained: none,
  });
}

/** Formats the ledger as a line for people. */
export function ledgerLine(ledger: Ledger): string {
  const { label, changes, once, duplicated, explained, lost, phantom, unanswered } = ledger;
  const pairs = once + duplicated + explained.length + lost.length;
  return (
    `${label}: ${changes} changes, ${pairs} to deliver: ${once} delivered once, ${duplicated} duplicated, ` +
    `${explained.length} explained by a row, ${lost.length} lost, ${phantom.length} phantom; ` +
    `${unanswered.all} changes unanswered, ${unanswered.committed} of them committed`
  );
}

/** Returns whether a subscription matches a change of a record. */
export function matches({ triggers, ownerId }: Audience, change: string, recordOwnerId: number): boolean {
  const isListed = triggers.some((trigger) => change.startsWith(`${trigger} `));
  return isListed && (ownerId === undefined || ownerId === recordOwnerId);
}

interface JournalRow {
  readonly change: string;
  readonly ownerId: number;
}

interface EventRow {
  readonly change: string;
  readonly count: number;
}

interface DeliveryRow {
  readonly change: string;
  readonly subscriptionId: number;
  readonly reason: string | null;
}

const journalText = `SELECT change, owner_id AS "ownerId" FROM journal`;

const eventChange = `event.trigger || ' ' || (event.snapshot->>'text')`;
const eventsText = `SELECT ${eventChange} AS change, count(*)::int AS count FROM svc.events AS event GROUP BY 1`;

const deliveriesText = `
  SELECT ${eventChange} AS change, delivery.subscription_id AS "subscriptionId",
    CASE WHEN delivery.status IN ('failed', 'cancelled') THEN delivery.last_error END AS reason
  FROM svc.deliveries AS delivery JOIN svc.events AS event ON event.id = delivery.event_id`;
