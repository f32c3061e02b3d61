export type ServiceName = "api" | "dispatcher" | "all";

/** The programs that read a configuration: those of the service, and `svc-admin`. */
export type ProgramName = ServiceName | "admin";
