import { expect } from "chai";
import type {
  SlotReservation,
  ReceiverSlots,
  ReleaseSlot,
  SlotHolder,
} from "../../src/deliveries/admission/receiver-slots.ts";

/** A visit that has entered the line. */
export interface Visit {
  state: "waits" | "begun" | "given up";
  release: ReleaseSlot;
}

export const stateOf = ({ state }: Visit): string => state;

export const holder = (origin = "a", userId = 1): SlotHolder => ({ origin, userId });
export const enter = (place: SlotReservation): Visit => {
  const visit: Visit = { state: "waits", release: () => expect.fail("it has not begun") };
  place.enter({
    begin(release) {
      expect(visit.state).to.equal("waits");
      Object.assign(visit, { state: "begun", release });
    },
    giveUp() {
      expect(visit.state).to.equal("waits");
      visit.state = "given up";
    },
  });
  return visit;
};
export const begunOf = (visits: readonly Visit[]): number =>
  visits.filter(({ state }) => state === "begun").length;

/** Reserves and enters; undefined without a place. */
export const visit = (slots: ReceiverSlots, origin = "a", userId = 1): Visit | undefined => {
  const room = slots.roomOf(holder(origin, userId));
  const place = slots.reserve(holder(origin, userId));
  expect(room > 0).to.equal(place !== undefined);
  return place && enter(place);
};

/** Enters visits while there are places. */
export const visitAll = (slots: ReceiverSlots, origin = "a", userId = 1): Visit[] => {
  const visits: Visit[] = [];
  for (let next = visit(slots, origin, userId); next !== undefined; next = visit(slots, origin, userId))
    visits.push(next);
  return visits;
};
/** Records a usual duration of a receiver. */
export const attempt = (slots: ReceiverSlots, durationMs: number, origin = "a", userId = 1): void =>
  visit(slots, origin, userId)?.release(durationMs);
