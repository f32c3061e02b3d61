import type { Actor } from "../kit/actor.ts";
import { actingAs } from "../db/audit.ts";
import type { PrismaClient } from "../db/generated/client.ts";
import type { UserModel } from "../db/generated/models.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";

/** The users of the API. */
export interface UserStore {
  /**
   * Returns `email_taken` also for an address that differs only in case: mail to both reaches the
   * same person.
   */
  create(user: {
    readonly name: string;
    readonly email: string;
    readonly isAdmin: boolean;
  }): Promise<{ readonly kind: "created"; readonly user: UserModel } | { readonly kind: "email_taken" }>;
  find(id: number): Promise<UserModel | undefined>;
  /** Lists the users by id. */
  list(): Promise<readonly UserModel[]>;
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
  return {
    async create({ name, email, isAdmin }) {
      // Not Prisma's `mode: insensitive`, which is an ILIKE: the underscore of an address would
      // match any character.
      const same = await prisma.$queryRaw<
        unknown[]
      >`SELECT id FROM svc.users WHERE lower(email) = lower(${email}) LIMIT 1`;
      if (same.length > 0) return { kind: "email_taken" };
      try {
        const user = await actingAs(prisma, actor, prisma.user.create({ data: { name, email, isAdmin } }));
        return { kind: "created", user };
      } catch (error) {
        if (databaseFaultOf(error).kind === "unique") return { kind: "email_taken" };
        throw error;
      }
    },
    async find(id) {
      return (await prisma.user.findUnique({ where: { id } })) ?? undefined;
    },
    async list() {
      return prisma.user.findMany({ orderBy: { id: "asc" } });
    },
    async setDisabled(id, isDisabled) {
      const change = prisma.user.updateMany({
        where: { id, disabledAt: isDisabled ? null : { not: null } },
        data: { disabledAt: isDisabled ? new Date() : null },
      });
      await actingAs(prisma, actor, change);
      return (await prisma.user.findUnique({ where: { id } })) ?? undefined;
    },
  };
}
