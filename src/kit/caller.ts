/** The authenticated user that makes a request. */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  /**
   * The user's admin flag. A resource may decide otherwise for its records, see
   * resources/access.ts.
   */
  readonly isAdmin: boolean;
  /**
   * Claims of the JWT, for `$user.claims.NAME` in the rules of access. Tokens of the service have
   * none.
   */
  readonly claims?: Readonly<Record<string, unknown>>;
}
