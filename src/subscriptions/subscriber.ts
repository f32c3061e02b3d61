import type { Caller } from "../kit/caller.ts";
import type { SealedSigning } from "./signing.ts";

/** A subscription that gets an event, with all data that an attempt needs. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  readonly signing: SealedSigning;
  /** Attempts a second; null for no limit. */
  readonly rateLimit: number | null;
  /** Owner of the subscription. */
  readonly user: Caller;
  /** Whether the subscription is on; its deliveries are held while it is off. */
  readonly isActive: boolean;
}
