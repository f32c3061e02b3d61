/** The programs of the service. */
export type ServiceName = "api" | "dispatcher" | "all";

/** The programs that read a configuration: those of the service, and the operator's commands. */
export type ProgramName = ServiceName | "admin";
