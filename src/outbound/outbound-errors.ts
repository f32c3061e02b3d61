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

/** Thrown for a connection that was given up because of other connections of the same user. */
export class NoTurnError extends Error {
  /** The step that took too long for the others. */
  readonly waitedFor: "look-up" | "handshake";

  constructor(waitedFor: "look-up" | "handshake") {
    super(`no turn for a ${waitedFor}`);
    this.name = "NoTurnError";
    this.waitedFor = waitedFor;
  }
}
