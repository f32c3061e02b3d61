import { hostname, userInfo } from "node:os";

/** The author of a change and its origin, for `svc.audit`. */
export interface Actor {
  readonly kind: "user" | "operator" | "service";
  /** Id of a user. */
  readonly id?: number;
  /** Id of the token that the user's request carried. */
  readonly tokenId?: number;
  /** The operating system's user of an operator, or the program of a process of the service. */
  readonly name?: string;
  /** The client's address or the host's name. Undefined when the client has left. */
  readonly source: string | undefined;
  readonly requestId?: string;
}

/** Returns the operator that runs `svc-admin`. In a container, it is the container's user. */
export function operatorActor(): Actor {
  return { kind: "operator", name: userName(), source: hostname() };
}

/** Returns the actor of an automatic change by a process of the service. */
export function serviceActor(program: string): Actor {
  return { kind: "service", name: program, source: hostname() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a uid without a name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
