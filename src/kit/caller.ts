/** The authenticated user that makes a request. */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  /**
   * The user's admin flag. A resource may decide differently for its records, see
   * resources/access.ts.
   */
  readonly isAdmin: boolean;
  /**
   * Claims of the request's JWT, for `$user.claims.NAME` in the rules of access. Without a
   * prototype, at most 6 KiB; empty for tokens of the service.
   */
  readonly claims: Readonly<Record<string, unknown>>;
  /**
   * Set when the token has neither the scope `*` nor `admin`. No resource then treats its user as
   * an admin.
   */
  readonly isLimited?: true;
}

/** The claims of a caller without a JWT. */
export const noClaims: Caller["claims"] = Object.freeze(Object.create(null) as Record<string, unknown>);
