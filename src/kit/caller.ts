/** The authenticated user on whose behalf something is done. */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  /** The user's admin flag; a resource may decide otherwise for its records, see resources/access.ts. */
  readonly isAdmin: boolean;
}
