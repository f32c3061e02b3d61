/** Thrown by the look-up of outbound connections for a name that has no permitted address. */
export class TargetRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TargetRefusedError";
  }
}

/** A name could not be looked up; the code is that of c-ares, such as ENOTFOUND. */
export class LookupError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`look-up failed: ${code}`);
    this.name = "LookupError";
    this.code = code;
  }
}
