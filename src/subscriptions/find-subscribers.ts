import type { Sql } from "../db/sql.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import { matchEvents, type Asked } from "./match.ts";

/** A subscription that gets an event, with everything that an attempt needs of it. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  /** See `SecretBox`. */
  readonly encryptedSecret: Buffer;
  /** Whose it is. */
  readonly user: Caller;
}

/** Who may be an admin for a resource, as far as the database can tell. With `code` anybody may. */
export type PossibleAdmins =
  | { readonly kind: "flag" | "nobody" | "code" }
  | { readonly kind: "emails"; readonly emails: readonly string[] };

interface Candidate extends Subscriber {
  readonly resource: string;
  readonly events: readonly string[];
}

type Row = Omit<Candidate, "user"> & Omit<Caller, "id"> & { readonly userId: number };

const findText = `
  SELECT subscription_id AS "subscriptionId", resource, events, url, encrypted_secret AS "encryptedSecret",
    user_id AS "userId", name, email, is_admin AS "isAdmin"
  FROM svc.possible_subscribers($1, $2, $3, $4, $5)`;

/** One line of what `svc.possible_subscribers` is asked: the subscriptions to a trigger of a resource of whom. */
type Question = readonly [resource: string, trigger: string, ...ofWhom: OfWhom];

type OfWhom =
  | readonly [kind: "owner", userId: number, email: null]
  | readonly [kind: "email", userId: null, email: string]
  | readonly [kind: "flag" | "everybody", userId: null, email: null];

/**
 * Finds the subscriptions that get each event of a batch, in the events' order, each answer by id. One statement narrows: it goes
 * from the distinct owners and admins to their subscriptions, each read once: 3 to 10 ms for 200 owners, however many users
 * subscribe to the resource. `matchEvents` decides.
 *
 * Where a code module decides who is an admin, all active subscriptions to the triggers of the resource are read, once for each
 * batch: 100,000 take 1 to 3 s. `isAdmin` in the mapping file has no such cost.
 *
 * @param possibleAdminsOf How the statement may narrow; `nobody` for a resource that is no longer registered.
 * @param isAdminFor Decides. May throw, when the code module beside the mapping file does.
 */
export function createSubscriberFinder({
  sql,
  possibleAdminsOf,
  isAdminFor,
}: {
  readonly sql: Sql;
  readonly possibleAdminsOf: (resource: string) => PossibleAdmins;
  readonly isAdminFor: (resource: string, user: Caller) => boolean;
}): (events: readonly Asked[]) => Promise<readonly (readonly Subscriber[])[]> {
  return async (events) => {
    const questions = questionsOf(events, possibleAdminsOf);
    if (questions.length === 0) return events.map(() => []);
    const columns = [0, 1, 2, 3, 4].map((column) => questions.map((question) => question[column]));
    const rows = await sql<Row>(findText, columns);
    const candidates = rows.map(({ userId: id, name, email, isAdmin, ...subscription }): Candidate => {
      return { ...subscription, user: { id, name, email, isAdmin, claims: noClaims } };
    });
    return matchEvents({ events, candidates, isAdminFor });
  };
}

/** Each once. */
function questionsOf(
  events: readonly Asked[],
  possibleAdminsOf: (resource: string) => PossibleAdmins,
): readonly Question[] {
  const questions = new Map<string, Question>();
  const ask = (...question: Question): unknown => questions.set(JSON.stringify(question), question);
  const changes = new Map(events.map((event) => [`${event.resource}.${event.event}`, event]));
  for (const { resource, event } of changes.values()) {
    const admins = possibleAdminsOf(resource);
    if (admins.kind === "flag") ask(resource, event, "flag", null, null);
    if (admins.kind === "code") ask(resource, event, "everybody", null, null);
    if (admins.kind === "emails") {
      for (const email of admins.emails) ask(resource, event, "email", null, email.toLowerCase());
    }
  }
  for (const { resource, event, owner_id: owner } of events) {
    const userId = userIdOf(owner);
    if (userId !== undefined) ask(resource, event, "owner", userId, null);
  }
  return [...questions.values()];
}

/** Undefined for an owner that no user can be. */
function userIdOf(ownerId: string | null): number | undefined {
  if (ownerId === null || !/^[1-9]\d{0,9}$/.test(ownerId)) return undefined;
  const id = Number(ownerId);
  return id < 2 ** 31 ? id : undefined;
}
