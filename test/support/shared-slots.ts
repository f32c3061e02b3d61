import { createSharedSlots, type SharedSlots } from "../../src/deliveries/admission/shared-slots.ts";

/** The slots of a dispatcher that is alone. */
export function createOwnSlots(): SharedSlots {
  const slots = createSharedSlots({ id: "one", joinAfterMs: 1, now: () => performance.now() });
  slots.see(["one"]);
  return slots;
}
