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
  /** Of the JWT, for `$user.claims.NAME` in the rules of access; a token of the service has none, and a webhook of the user neither. */
  readonly claims?: Readonly<Record<string, unknown>>;
}
