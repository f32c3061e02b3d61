import { hostname, userInfo } from "node:os";

/** Who makes a change, and from where: what `svc.audit` keeps of it. */
export interface Actor {
  readonly kind: "user" | "operator" | "service";
  /** Id of a user. */
  readonly id?: number;
  /** Id of the token that the user's request carried. */
  readonly tokenId?: number;
  /** The operating system's user of an operator, or the program of a process of the service. */
  readonly name?: string;
  /** The client's address or the host's name. Undefined when the client has gone. */
  readonly source: string | undefined;
  readonly requestId?: string;
}

/** Returns the operator that runs `svc-admin`. In a container that is the container's user. */
export function operatorActor(): Actor {
  return { kind: "operator", name: userName(), source: hostname() };
}

/** Returns the actor of a change that a process of the service makes by itself. */
export function serviceActor(program: string): Actor {
  return { kind: "service", name: program, source: hostname() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a uid that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
