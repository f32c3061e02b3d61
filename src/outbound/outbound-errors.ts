/** Thrown by the look-up of outbound connections for a name that has no permitted address. */
export class TargetRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TargetRefusedError";
  }
}

/** Thrown for a name that could not be looked up. The code is that of c-ares, such as ENOTFOUND. */
export class LookupError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`look-up failed: ${code}`);
    this.name = "LookupError";
    this.code = code;
  }
}

/** Thrown for a look-up that never began, because the user's other look-ups took too long. */
export class NoTurnError extends Error {
  constructor() {
    super("Other names of the same user were being looked up for too long.");
    this.name = "NoTurnError";
  }
}
