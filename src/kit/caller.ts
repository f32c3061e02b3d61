/** The authenticated user on whose behalf something is done. */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  /** The user's admin flag; a resource may decide otherwise for its records, see resources/access.ts. */
  readonly isAdmin: boolean;
  /** Of the JWT that the request carries: without a prototype, at most 6 KiB. Empty for other tokens. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** The token has neither the scope `*` nor `admin`: no resource takes its user for an admin. */
  readonly isLimited?: true;
}

/** The claims of a caller without a JWT. */
export const noClaims: Caller["claims"] = Object.freeze(Object.create(null) as Record<string, unknown>);
