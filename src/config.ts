/** The settings of one process, checked and with every default filled in (contract, section 2). Durations in ms. */
export interface Config {
  /** Absolute. */
  readonly configDir: string;
  /** Absolute. */
  readonly dataDir: string;
  readonly database: {
    /** Undefined: the embedded database in `dataDir`. */
    readonly url: string | undefined;
    readonly autoMigrate: boolean;
    /** Most connections of one process. */
    readonly poolSize: number;
  };
  readonly broker: {
    /** Undefined: the in-process broker. */
    readonly url: string | undefined;
  };
  readonly http: {
    readonly host: string;
    readonly port: number;
    /** Begins with a slash and ends without one; empty for none. */
    readonly routePrefix: string;
    /** Origin, without a trailing slash. Undefined: from the request. */
    readonly publicUrl: string | undefined;
    readonly bodyLimitBytes: number;
    readonly maxPerPage: number;
  };
  /** 32 bytes. Undefined only with the embedded database: it is then kept in `dataDir`. */
  readonly secretKey: Buffer | undefined;
  readonly log: { readonly level: string };
  readonly metrics: { readonly port: number };
  readonly relay: {
    /** How often changes made by other programs are looked for. */
    readonly pollIntervalMs: number;
    /** Most events of one turn. */
    readonly batchSize: number;
  };
  readonly webhooks: {
    readonly timeoutMs: number;
    readonly maxAttempts: number;
    /** Wait before attempt n+1 is item n-1; the last one repeats. */
    readonly backoffMs: readonly number[];
    /** Share, 0 to 1. */
    readonly jitter: number;
    readonly manualRetryLimit: number;
    /** CIDRs. */
    readonly allowedNetworks: readonly string[];
    readonly concurrency: number;
    /** How often due retries and stranded deliveries are looked for. */
    readonly sweepIntervalMs: number;
    /** How long a message is believed to be in the broker before its delivery is published again. */
    readonly requeueAfterMs: number;
  };
}
