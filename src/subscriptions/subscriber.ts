import type { Caller } from "../kit/caller.ts";
import type { SealedSigning } from "./signing.ts";

/** A subscription that gets an event, with everything that an attempt needs of it. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  readonly signing: SealedSigning;
  /** Attempts a second; null: no limit. */
  readonly rateLimit: number | null;
  /** Owner of the subscription. */
  readonly user: Caller;
  /** False: its deliveries are held. */
  readonly isActive: boolean;
}
