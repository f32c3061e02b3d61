import type { Actor } from "../kit/actor.ts";
import { handOverIn } from "../db/audit.ts";
import type { Sql, Transact } from "../db/sql.ts";
import { refuseSpent } from "./refuse-spent.ts";

/** Advisory lock of every change of users. The number is arbitrary; no other lock uses it. */
const lockKey = 7_382_914_407;

/** The issuer and subject of the JWTs of a user. */
export interface JwtSubject {
  readonly issuer: string;
  readonly subject: string;
}

/** A stored user of the API. */
export interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
  /** Time of the disabling. Null: the user is enabled. */
  readonly disabledAt: Date | null;
  /** Issuer of the user's JWTs; null without any. */
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

type NewUser = Pick<User, "name" | "email" | "isAdmin"> & Partial<JwtSubject>;

/** Changes of a user; missing fields stay. */
export interface UserChanges {
  readonly name?: string;
  readonly email?: string;
  readonly isAdmin?: boolean;
  readonly isDisabled?: boolean;
  /** Null: the user has no JWTs any more. */
  readonly jwt?: JwtSubject | null;
}

/** Why a user cannot be created or changed. */
export type UserRefusal =
  /** Also when the address exists in another case, because mail to both goes to the same person. */
  { readonly kind: "email_taken" } | { readonly kind: "subject_taken" };

/** The users of the API. */
export interface UserStore {
  /**
   * Creates a user.
   *
   * @param actor Author of the change, for the audit trail. Default: the store's actor.
   * @param transaction The transaction to join. Default: one of its own.
   */
  create(
    user: NewUser,
    actor?: Actor,
    transaction?: Sql,
  ): Promise<{ readonly kind: "created"; readonly user: User } | UserRefusal>;
  /** Returns the user of a JWT. Creates it unless another process has just done so. */
  provision(
    user: JwtSubject & { readonly name: string; readonly email: string },
  ): Promise<{ readonly kind: "found"; readonly user: User } | { readonly kind: "email_taken" }>;
  find(id: number): Promise<User | undefined>;
  findBySubject(subject: JwtSubject): Promise<User | undefined>;
  /** Lists the users by id. */
  list(): Promise<readonly User[]>;
  /** Changes a user. `last_admin`: no other user with the admin flag would be enabled. */
  update(
    id: number,
    changes: UserChanges,
    actor: Actor,
  ): Promise<
    | { readonly kind: "updated"; readonly user: User }
    | { readonly kind: "missing" }
    | { readonly kind: "last_admin" }
    | UserRefusal
  >;
  /**
   * Enables or disables a user. Returns the user; undefined for an unknown id. A user that was
   * disabled before keeps the first date.
   */
  setDisabled(id: number, isDisabled: boolean): Promise<User | undefined>;
}

const columns = `
  id, name, email, is_admin AS "isAdmin", disabled_at AS "disabledAt", issuer, subject,
  created_at AS "createdAt", updated_at AS "updatedAt"`;
const findText = `SELECT ${columns} FROM svc.users WHERE id = $1::int`;
const findBySubjectText = `SELECT ${columns} FROM svc.users WHERE issuer = $1 AND subject = $2`;
const listText = `SELECT ${columns} FROM svc.users ORDER BY id`;
const otherAdminsText = `
  SELECT id FROM svc.users WHERE is_admin AND disabled_at IS NULL AND id <> $1::int LIMIT 1`;
const insertText = `
  INSERT INTO svc.users (name, email, is_admin, issuer, subject) VALUES ($1, $2, $3, $4, $5)
  RETURNING ${columns}`;
const updateText = `
  UPDATE svc.users
  SET name = $2, email = $3, is_admin = $4, issuer = $5, subject = $6, updated_at = now(),
    disabled_at = CASE WHEN $7::boolean THEN coalesce(disabled_at, now()) END
  WHERE id = $1::int RETURNING ${columns}`;

/**
 * Creates the store of the users of the API.
 *
 * @param actor Author of the changes, for the audit trail.
 */
export function createUserStore({
  sql: ownSql,
  transact,
  actor,
}: {
  readonly sql: Sql;
  readonly transact: Transact;
  readonly actor: Actor;
}): UserStore {
  const change = <T>(by: Actor, work: (sql: Sql) => Promise<T>, joined?: Sql): Promise<T> =>
    transact(async (sql) => {
      await lockUsers(sql, by);
      return work(sql);
    }, joined);
  return {
    create: (user, by = actor, transaction) => change(by, (sql) => createUser(sql, user), transaction),
    async provision({ issuer, subject, name, email }) {
      return change(actor, async (sql) => {
        const found = await findBySubject(sql, { issuer, subject });
        if (found !== undefined) return { kind: "found", user: found };
        if (await isEmailTaken(sql, email)) return { kind: "email_taken" };
        return {
          kind: "found",
          user: await insertUser(sql, { issuer, subject, name, email, isAdmin: false }),
        };
      });
    },
    find: (id) => findUser(ownSql, id),
    findBySubject: (subject) => findBySubject(ownSql, subject),
    list: () => ownSql<User>(listText),
    update: (id, changes, by) => change(by, (sql) => updateUser(sql, id, changes)),
    async setDisabled(id, isDisabled) {
      return change(actor, async (sql) => {
        const user = await findUser(sql, id);
        return user === undefined || (user.disabledAt !== null) === isDisabled
          ? user
          : writeUser(sql, user, { isDisabled });
      });
    },
  };
}

/**
 * Serialises changes of users: no index makes addresses unique in any case, or keeps the last
 * admin.
 */
async function lockUsers(sql: Sql, actor: Actor): Promise<void> {
  await sql("SELECT pg_advisory_xact_lock($1::bigint)", [String(lockKey)]);
  const { kind, id, tokenId } = actor;
  if (kind === "user" && id !== undefined)
    await refuseSpent(sql, { userId: id, tokenId }, { isForAdmins: true });
  await handOverIn(sql, actor);
}

async function findUser(sql: Sql, id: number): Promise<User | undefined> {
  const [user] = await sql<User>(findText, [id]);
  return user;
}

async function findBySubject(sql: Sql, { issuer, subject }: JwtSubject): Promise<User | undefined> {
  const [user] = await sql<User>(findBySubjectText, [issuer, subject]);
  return user;
}

async function createUser(sql: Sql, user: NewUser): ReturnType<UserStore["create"]> {
  if (await isEmailTaken(sql, user.email)) return { kind: "email_taken" };
  if (await isSubjectTaken(sql, user)) return { kind: "subject_taken" };
  return { kind: "created", user: await insertUser(sql, user) };
}

async function insertUser(sql: Sql, user: NewUser): Promise<User> {
  const { name, email, isAdmin, issuer = null, subject = null } = user;
  const [created] = await sql<User>(insertText, [name, email, isAdmin, issuer, subject]);
  return created as User;
}

async function updateUser(sql: Sql, id: number, changes: UserChanges): ReturnType<UserStore["update"]> {
  const user = await findUser(sql, id);
  if (user === undefined) return { kind: "missing" };
  if (Object.keys(changes).length === 0) return { kind: "updated", user };
  const { email, isAdmin, isDisabled, jwt } = changes;
  const losesAdmin = user.isAdmin && user.disabledAt === null && (isAdmin === false || isDisabled === true);
  if (losesAdmin && (await sql(otherAdminsText, [id])).length === 0) return { kind: "last_admin" };
  if (email !== undefined && (await isEmailTaken(sql, email, id))) return { kind: "email_taken" };
  if (jwt !== undefined && jwt !== null && (await isSubjectTaken(sql, jwt, id)))
    return { kind: "subject_taken" };
  return { kind: "updated", user: await writeUser(sql, user, changes) };
}

/** Writes a user. A user that was disabled before keeps the first date. */
async function writeUser(
  sql: Sql,
  user: User,
  { jwt = subjectOf(user), isDisabled = user.disabledAt !== null, ...changes }: UserChanges,
): Promise<User> {
  const { id, name, email, isAdmin } = { ...user, ...changes };
  const values = [id, name, email, isAdmin, jwt?.issuer ?? null, jwt?.subject ?? null, isDisabled];
  const [updated] = await sql<User>(updateText, values);
  return updated as User;
}

function subjectOf({ issuer, subject }: User): JwtSubject | null {
  return issuer === null || subject === null ? null : { issuer, subject };
}

async function isEmailTaken(sql: Sql, email: string, exceptId = 0): Promise<boolean> {
  const text = "SELECT id FROM svc.users WHERE lower(email) = lower($1) AND id <> $2::int LIMIT 1";
  return (await sql(text, [email, exceptId])).length > 0;
}

async function isSubjectTaken(
  sql: Sql,
  { issuer, subject }: Partial<JwtSubject>,
  exceptId = 0,
): Promise<boolean> {
  if (issuer === undefined || subject === undefined) return false;
  const text = "SELECT id FROM svc.users WHERE issuer = $1 AND subject = $2 AND id <> $3::int";
  return (await sql(text, [issuer, subject, exceptId])).length > 0;
}
