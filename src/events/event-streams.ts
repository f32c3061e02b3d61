import { Readable } from "node:stream";
import type { ApiContext } from "../http/state.ts";
import { messageOf, overloadedError, validationError } from "../kit/errors.ts";
import { createSharedPlaces, type Turns } from "../kit/turns.ts";
import type { Caller } from "../kit/caller.ts";
import { groupBy } from "../kit/group-by.ts";
import { createAlarm, pause, type Worker } from "../kit/worker.ts";
import type { EventFeed, FeedPage, FeedQuery, ReadOptions } from "./event-feed.ts";
import type { EventHorizon } from "./event-horizon.ts";
import { readPosition } from "./feed-parameters.ts";

/** The open streams of events of a process, as Server-Sent Events. */
export interface EventStreams extends Worker {
  /**
   * Answers with a stream.
   *
   * @throws AppError `server.overloaded` when the process or the user has too many streams.
   */
  open(ctx: ApiContext, from: { readonly query: FeedQuery; readonly after: bigint | undefined }): void;
  /** Looks for new events now. */
  wake(): void;
}

/** Times in ms. */
const limits = {
  /** Most streams of the process. */
  streams: 100,
  perUser: 10,
  heartbeatMs: 15_000,
  /** How often a process polls for events that other processes wrote. */
  pollMs: 500,
  /** Least time between two polls. */
  leastMs: 50,
  /** How long a client may take to read a part. */
  slowMs: 15_000,
  /**
   * Longest life of a stream, below the time limit of an exchange (server.ts). Clients reconnect by
   * themselves.
   */
  lifetimeMs: 240_000,
  /** Least time between two checks of a stream's token. */
  recheckMs: 1_000,
  /** Most events of one read. */
  page: 50,
  /**
   * Streams of all users that read at the same time; one for each user. One of them is left to new
   * events: ten users who read all events delayed those of others by a second.
   */
  readers: 2,
};

export interface EventStreamsOptions {
  readonly feed: Pick<EventFeed, "read">;
  readonly horizon: EventHorizon;
  /** Returns the caller of a request as of now; undefined when its token is no longer valid. */
  readonly recheck: (ctx: ApiContext) => Promise<Caller | undefined>;
  /** Changed limits, for tests. */
  readonly changes?: Partial<typeof limits>;
}

/** One open stream. */
interface Stream {
  readonly ctx: ApiContext;
  readonly query: FeedQuery;
  isOver: boolean;
  /** Wakes a waiting stream with the current horizon; undefined while the stream reads. */
  wake: ((horizon: bigint) => void) | undefined;
}

interface State extends EventStreamsOptions {
  readonly limits: typeof limits;
  readonly open: Set<Stream>;
  /** Runs a read when it is the user's turn. */
  readonly inTurn: Turns["run"];
  /** Runs a read of earlier events when it may take one of the turns. */
  readonly inTurnOfEarlier: Turns["run"];
  /** Whether the configuration has ended. Requests that waited may open a stream after that. */
  isOver: boolean;
}

/** An id after every event, which wakes a stream that is over. */
const behindAll = 2n ** 63n;

/** Creates the streams of one configuration. They end when the worker stops. */
export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const all = { ...limits, ...options.changes };
  const state: State = {
    ...options,
    limits: all,
    open: new Set(),
    inTurn: createSharedPlaces({ ofAll: all.readers, ofEach: 1 }),
    inTurnOfEarlier: createSharedPlaces({ ofAll: Math.max(1, all.readers - 1), ofEach: 1 }),
    isOver: false,
  };
  const alarm = createAlarm();
  return {
    name: "event streams",
    open: (ctx, from) => open(state, ctx, from),
    wake: () => alarm.wake(),
    async run(signal) {
      while (!signal.aborted) {
        if (state.open.size > 0) await passOn(state);
        // Every write of this process wakes the worker, but a thousand writes a second must not
        // cause a thousand polls.
        await pause(all.leastMs, signal);
        await alarm.wait(all.pollMs, signal);
      }
      state.isOver = true;
      for (const stream of state.open) end(stream);
    },
  };
}

/**
 * Wakes the streams for which there may be new events. When the database is unavailable, the next
 * poll tries again.
 */
async function passOn({ open: streams, horizon }: State): Promise<void> {
  try {
    const reached = await horizon();
    for (const { wake } of streams) wake?.(reached);
  } catch {
    // The next poll is due soon, and each request reports the fault itself.
  }
}

function open(
  state: State,
  ctx: ApiContext,
  { query, after }: { readonly query: FeedQuery; readonly after: bigint | undefined },
): void {
  const last = readPosition(ctx.get("Last-Event-ID"));
  if (last === "wrong")
    throw validationError({
      "Last-Event-ID": ["The Last-Event-ID header must be the id or the UUID of an event."],
    });
  makeRoom(state, ctx.state.caller);
  const stream: Stream = { ctx, query, isOver: state.isOver, wake: undefined };
  state.open.add(stream);
  // Node.js warns about more than ten listeners for the same event, and a piped answer has more.
  ctx.res.setMaxListeners(20);
  ctx.res.once("close", () => {
    state.open.delete(stream);
    end(stream);
  });
  ctx.type = "text/event-stream";
  ctx.set({ "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
  ctx.body = Readable.from(guarded(state, ctx, chunks(state, stream, last ?? after)), { objectMode: false });
}

/**
 * Ends a stream of the user with the most, when the process has too many and the caller fewer.
 * Otherwise ten users could keep all others from their events.
 *
 * @throws AppError `server.overloaded`.
 */
function makeRoom({ open: streams, limits: all }: State, { id }: Caller): void {
  const ofUsers = groupBy([...streams], (stream) => stream.ctx.state.caller.id);
  const own = ofUsers.get(id)?.length ?? 0;
  if (own >= all.perUser) throw overloadedError(10);
  if (streams.size < all.streams) return;
  const [[oldest, ...others] = []] = [...ofUsers.values()].toSorted(
    (one, other) => other.length - one.length,
  );
  if (oldest === undefined || others.length <= own) throw overloadedError(10);
  streams.delete(oldest);
  oldest.ctx.res.destroy();
}

function end(stream: Stream): void {
  stream.isOver = true;
  stream.wake?.(behindAll);
}

/**
 * Ends a stream that cannot continue now. The client connects again with its last id. Cuts a stream
 * whose client does not read, because unread parts wait in memory.
 */
async function* guarded(
  { limits: { slowMs } }: State,
  ctx: ApiContext,
  source: AsyncIterable<string>,
): AsyncGenerator<string> {
  try {
    for await (const chunk of source) {
      const timer = setTimeout(() => ctx.res.destroy(), slowMs);
      try {
        yield chunk;
      } finally {
        clearTimeout(timer);
      }
    }
  } catch (error) {
    // The stream of a client that has left ends with an error too.
    if (!ctx.res.destroyed) ctx.state.log().warn({ reason: messageOf(error) }, "a stream of events ends");
  }
}

async function* chunks(state: State, stream: Stream, from: bigint | undefined): AsyncGenerator<string> {
  const { limits: all } = state;
  const { ctx, query } = stream;
  const endsAt = performance.now() + all.lifetimeMs;
  let { caller } = ctx.state;
  let checkedAt = performance.now();
  let after = from ?? (await state.horizon.start());
  let isBehind = from !== undefined;
  yield `retry: 1000\nid: ${after}\n\n`;
  while (!stream.isOver && performance.now() < endsAt) {
    if (performance.now() - checkedAt >= all.recheckMs) {
      const now = await state.recheck(ctx);
      if (now === undefined) return;
      caller = now;
      checkedAt = performance.now();
    }
    const page = await readPage(state, ctx, { query, caller, after, isBehind });
    isBehind = page.hasMore;
    const before = after;
    after = page.next > after ? page.next : after;
    for (const { id, json } of page.events) yield `id: ${id}\ndata: ${json}\n\n`;
    // An id without data moves the client's position past events that it may not read.
    if (page.events.at(-1)?.id !== String(after) && after !== before) yield `id: ${after}\n\n`;
    if (page.hasMore) continue;
    if (!(await reaches(stream, after, all.heartbeatMs))) yield ": heartbeat\n\n";
  }
}

async function readPage(
  { feed, inTurn, inTurnOfEarlier, limits: { page: take } }: State,
  ctx: ApiContext,
  { isBehind, ...asked }: Omit<ReadOptions, "take"> & { readonly after: bigint; readonly isBehind: boolean },
): Promise<FeedPage> {
  const { id } = asked.caller;
  const read = (): Promise<FeedPage> => inTurn(id, () => feed.read({ ...asked, take }));
  const page = await (isBehind ? inTurnOfEarlier(id, read) : read());
  const bytes = page.events.reduce((sum, { json }) => sum + 2 * Buffer.byteLength(json), 0);
  ctx.state.memory.settle(bytes);
  return page;
}

/** Waits for an event behind `after`; resolves to false when it is time for a heartbeat. */
function reaches(stream: Stream, after: bigint, heartbeatMs: number): Promise<boolean> {
  if (stream.isOver) return Promise.resolve(true);
  return new Promise((resolve) => {
    const answer = (isReached: boolean): void => {
      clearTimeout(timer);
      stream.wake = undefined;
      resolve(isReached);
    };
    const timer = setTimeout(answer, heartbeatMs, false);
    stream.wake = (horizon) => {
      if (horizon > after) answer(true);
    };
  });
}
