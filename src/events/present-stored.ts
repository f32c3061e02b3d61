import { ResultTooLargeError } from "../db/result-limit.ts";
import { groupBy } from "../kit/group-by.ts";
import { inParts, isTimeOver, type Steps } from "../kit/parts.ts";
import type { Captured, PresentedAll } from "./event-presenter.ts";

/** A captured event, as a statement has read it. */
export interface StoredEvent {
  readonly id: string;
  readonly resource: string;
  readonly snapshot: Captured["snapshot"] | null;
  readonly previous: Captured["snapshot"] | null;
}

/** Payload of an event's deliveries, as JSON. */
export interface Payload {
  readonly data: string;
  /** The record before an update; null when no old row is kept. */
  readonly previous: string | null;
}

/** Most bytes of the texts, because many events may show one large related record. */
export const mostTextBytes = 4 * 1024 ** 2;

/** Most bytes of texts that are written without a look at the clock. */
const mostAtOnce = 256 * 1024;

/**
 * Presents captured events of any resources. Returns their JSON by event id; undefined for an event
 * whose transform fails.
 *
 * @param userId The user whose request it is: its long work has turns. Undefined for a worker.
 * @param mayBeFewer Whether fewer events may be read: they are shorter, and may take less time.
 * @param away Returns the error for a resource whose records cannot be read now.
 * @throws ResultTooLargeError when fewer are to be read.
 */
export async function presentStored(
  present: (resource: string, events: readonly Captured[]) => Promise<PresentedAll>,
  events: readonly StoredEvent[],
  {
    userId,
    mayBeFewer,
    away,
  }: {
    readonly userId?: number;
    readonly mayBeFewer: boolean;
    readonly away: (resource: string, reason: string) => Error;
  },
): Promise<ReadonlyMap<string, Payload | undefined>> {
  const texts = new Map<string, Payload | undefined>();
  let bytes = 0;
  function* write(own: readonly StoredEvent[], answer: PresentedAll): Steps<void> {
    for (const [index, { id }] of own.entries()) {
      if (bytes > mostAtOnce && isTimeOver()) yield;
      const one = answer.kind === "each" ? answer.answers[index] : undefined;
      const text = one?.kind === "presented" ? textsOf(one) : undefined;
      bytes += (text?.data.length ?? 0) + (text?.previous?.length ?? 0);
      if (bytes > mostTextBytes && mayBeFewer) throw new ResultTooLargeError(mostTextBytes, texts.size);
      texts.set(id, text);
    }
  }
  for (const [resource, own] of groupBy(events, (event) => event.resource)) {
    const answer = await present(
      resource,
      own.map(({ snapshot, previous }) => ({ snapshot: snapshot ?? {}, previous })),
    );
    if (answer.kind === "none" && answer.isTooSlow === true && mayBeFewer)
      throw new ResultTooLargeError(mostTextBytes);
    if (answer.kind === "none" && answer.isPassing) throw away(resource, answer.reason);
    await inParts(userId, write(own, answer));
  }
  return texts;
}

function textsOf({ data, previous }: { readonly data: unknown; readonly previous?: unknown }): Payload {
  return { data: JSON.stringify(data), previous: previous === undefined ? null : JSON.stringify(previous) };
}
