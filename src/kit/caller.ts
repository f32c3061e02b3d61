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
}
