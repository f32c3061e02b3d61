import { createSharedSlots, type SharedSlots } from "../../src/deliveries/admission/shared-slots.ts";

/** Creates the slots of a single dispatcher. */
export function createOwnSlots(): SharedSlots {
  const slots = createSharedSlots({ id: "one", joinAfterMs: 1, now: () => performance.now() });
  slots.see(["one"]);
  return slots;
}
