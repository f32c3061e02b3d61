import { hostname, userInfo } from "node:os";

/** On whose behalf something is changed, and from where: what `svc.audit` keeps of it. */
export interface Actor {
  readonly kind: "user" | "operator" | "service";
  /** Of a user. */
  readonly id?: number;
  /** Of the token that the user's request carried. */
  readonly tokenId?: number;
  /** The operating system's user of an operator; the program of a process of the service. */
  readonly name?: string;
  /** Address of the client, or name of the host; undefined when the client has gone. */
  readonly source: string | undefined;
  readonly requestId?: string;
}

/** Who runs `svc-admin`. In a container that is the container's user. */
export function operatorActor(): Actor {
  return { kind: "operator", name: userName(), source: hostname() };
}

/** A process that acts by itself. */
export function serviceActor(program: string): Actor {
  return { kind: "service", name: program, source: hostname() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
