import type { Actor } from "../kit/actor.ts";
import { actingAs, handOver, handOverIn } from "../db/audit.ts";
import type { Prisma, PrismaClient } from "../db/generated/client.ts";
import type { UserModel } from "../db/generated/models.ts";
import { sqlOverPrisma } from "../db/prisma-sql.ts";
import type { Sql } from "../db/sql.ts";

/** Shared by all that make or change users; no meaning but that no other lock uses it. */
const lockKey = 7_382_914_407;

/** Whom JWTs are about. */
export interface JwtSubject {
  readonly issuer: string;
  readonly subject: string;
}

export interface NewUser extends Partial<JwtSubject> {
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

export interface UserChanges {
  readonly name?: string;
  readonly email?: string;
  readonly isAdmin?: boolean;
  readonly isDisabled?: boolean;
  /** Null: no JWT is the user's any more. */
  readonly jwt?: JwtSubject | null;
}

export type UserRefusal =
  /** Also when the address is there in another case: mail to both goes to the same person. */
  { readonly kind: "email_taken" } | { readonly kind: "subject_taken" };

/** The users of the API. */
export interface UserStore {
  /**
   * @param actor Who does it, for the audit trail. Default: the store's.
   * @param transaction To be a part of; default: one of its own.
   */
  create(
    user: NewUser,
    actor?: Actor,
    transaction?: Sql,
  ): Promise<{ readonly kind: "created"; readonly user: UserModel } | UserRefusal>;
  /** Returns the user of a JWT; makes it unless another process has just done so. */
  provision(
    user: JwtSubject & { readonly name: string; readonly email: string },
  ): Promise<{ readonly kind: "found"; readonly user: UserModel } | { readonly kind: "email_taken" }>;
  find(id: number): Promise<UserModel | undefined>;
  /** Lists the users by id. */
  list(): Promise<readonly UserModel[]>;
  /** `last_admin`: no other user with the admin flag would be enabled. */
  update(
    id: number,
    changes: UserChanges,
    actor: Actor,
  ): Promise<
    | { readonly kind: "updated"; readonly user: UserModel }
    | { readonly kind: "missing" }
    | { readonly kind: "last_admin" }
    | UserRefusal
  >;
  /**
   * Returns the changed user; undefined for an unknown id. A user that was disabled before keeps
   * the first date.
   */
  setDisabled(id: number, isDisabled: boolean): Promise<UserModel | undefined>;
}

/**
 * Creates the store of the users of the API.
 *
 * @param actor Who changes them, for the audit trail.
 */
export function createUserStore({
  prisma,
  actor,
}: {
  readonly prisma: PrismaClient;
  readonly actor: Actor;
}): UserStore {
  const change = <T>(by: Actor, work: (tx: Tx) => Promise<T>): Promise<T> => changeUsers(prisma, by, work);
  return {
    async create(user, by = actor, transaction) {
      if (transaction === undefined) return change(by, (tx) => createUser(sqlOverPrisma(tx), user));
      await transaction("SELECT pg_advisory_xact_lock($1::bigint)", [String(lockKey)]);
      await handOverIn(transaction, by);
      return createUser(transaction, user);
    },
    async provision({ issuer, subject, name, email }) {
      return change(actor, async (tx) => {
        const found = await tx.user.findUnique({ where: { issuer_subject: { issuer, subject } } });
        if (found !== null) return { kind: "found", user: found };
        if (await isEmailTaken(sqlOverPrisma(tx), email)) return { kind: "email_taken" };
        const user = await tx.user.create({ data: { issuer, subject, name, email } });
        return { kind: "found", user };
      });
    },
    async find(id) {
      return (await prisma.user.findUnique({ where: { id } })) ?? undefined;
    },
    async list() {
      return prisma.user.findMany({ orderBy: { id: "asc" } });
    },
    update: (id, changes, by) => change(by, (tx) => updateUser(tx, id, changes)),
    async setDisabled(id, isDisabled) {
      const disabling = prisma.user.updateMany({
        where: { id, disabledAt: isDisabled ? null : { not: null } },
        data: { disabledAt: isDisabled ? new Date() : null },
      });
      await actingAs(prisma, actor, disabling);
      return (await prisma.user.findUnique({ where: { id } })) ?? undefined;
    },
  };
}

type Tx = Prisma.TransactionClient;

/** Runs one change at a time: no index holds addresses apart by case, or keeps the last admin. */
async function changeUsers<T>(prisma: PrismaClient, actor: Actor, work: (tx: Tx) => Promise<T>): Promise<T> {
  return prisma.$transaction(
    async (tx) => {
      await tx.$executeRaw`SELECT pg_advisory_xact_lock(${lockKey}::bigint)`;
      await handOver(tx, actor);
      return work(tx);
    },
    // As patient as every statement of the service.
    { maxWait: 10_000, timeout: 30_000 },
  );
}

const insertText = `
  INSERT INTO svc.users (name, email, is_admin, issuer, subject) VALUES ($1, $2, $3, $4, $5)
  RETURNING id, name, email, is_admin AS "isAdmin", disabled_at AS "disabledAt", issuer, subject,
    created_at AS "createdAt", updated_at AS "updatedAt"`;

async function createUser(sql: Sql, user: NewUser): ReturnType<UserStore["create"]> {
  const { name, email, isAdmin, issuer = null, subject = null } = user;
  if (await isEmailTaken(sql, email)) return { kind: "email_taken" };
  if (await isSubjectTaken(sql, user)) return { kind: "subject_taken" };
  const [created] = await sql<UserModel>(insertText, [name, email, isAdmin, issuer, subject]);
  return { kind: "created", user: created as UserModel };
}

async function updateUser(
  tx: Tx,
  id: number,
  { isDisabled, jwt, ...changes }: UserChanges,
): ReturnType<UserStore["update"]> {
  const user = await tx.user.findUnique({ where: { id } });
  if (user === null) return { kind: "missing" };
  const losesAdmin = user.isAdmin && user.disabledAt === null && (changes.isAdmin === false || isDisabled);
  if (losesAdmin === true) {
    const others = { isAdmin: true, disabledAt: null, id: { not: id } };
    if ((await tx.user.count({ where: others })) === 0) return { kind: "last_admin" };
  }
  const sql = sqlOverPrisma(tx);
  if (changes.email !== undefined && (await isEmailTaken(sql, changes.email, id)))
    return { kind: "email_taken" };
  if (jwt !== undefined && jwt !== null && (await isSubjectTaken(sql, jwt, id)))
    return { kind: "subject_taken" };
  // A user disabled before keeps the first date.
  const disabledAt = isDisabled === true ? (user.disabledAt ?? new Date()) : null;
  const updated = await tx.user.update({
    where: { id },
    data: {
      ...changes,
      ...(isDisabled === undefined ? {} : { disabledAt }),
      ...(jwt === undefined ? {} : { issuer: jwt?.issuer ?? null, subject: jwt?.subject ?? null }),
    },
  });
  return { kind: "updated", user: updated };
}

/** Compares in SQL: Prisma's `mode: insensitive` is an ILIKE, in which `_` matches anything. */
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
