import { STATUS_CODES, type IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import { createAgents, type Agents } from "./connections.ts";
import type { AttemptResult } from "./delivery.ts";
import { exchange, type Exchange, type Post } from "./exchange.ts";
import { failureOf, type Failure } from "./failure.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { createSharedLookup, type Lookup } from "./shared-lookup.ts";
import { createTargetPolicy, perUser, type ReceiverNetworks, type TargetPolicy } from "./targets.ts";

/** What is kept of an answer: a receiver decides what it sends, this service what it stores. */
const maxBodyBytes = 16 * 1024;
const maxHeaders = 64;
const maxHeaderBytes = 8 * 1024;

/** What came of asking for an attempt. */
export type Sent =
  | { readonly kind: "made"; readonly result: AttemptResult }
  | { readonly kind: "unmade"; readonly reason: string };

export interface Sender {
  /**
   * Makes one attempt. Never rejects: whatever happens is in the result.
   *
   * @param user Whose webhook it is, as of this moment.
   */
  send(post: Post, user: { readonly id: number; readonly isAdmin: boolean }): Promise<Sent>;
  /** Closes every connection, those in use too: let the attempts in flight end first. */
  close(): void;
}

/** Where one attempt may go, and the connections there. */
interface Route {
  readonly policy: TargetPolicy;
  readonly kept: Agents;
  readonly fresh: Agents;
}

/**
 * Sends webhooks, one POST each: no redirects, no cookies, no proxy from the environment, and no retries but one, when a kept
 * connection turns out to be closed before the receiver can have seen the request.
 *
 * @param timeoutMs For a whole attempt: DNS, connect, TLS, response head and body.
 * @param maxSockets Most connections to one receiver; attempts beyond wait for one within their time.
 */
export function createSender({
  timeoutMs,
  maxSockets,
  lookup = createSharedLookup(),
  ...networks
}: ReceiverNetworks & {
  readonly timeoutMs: number;
  readonly maxSockets: number;
  readonly lookup?: Lookup;
}): Sender {
  // Agents for each policy: a kept connection is taken up without another look at its address.
  const routeFor = perUser(networks, (allowed): Route => {
    const policy = createTargetPolicy(allowed);
    const shared = { policy, maxSockets, lookup };
    return {
      policy,
      kept: createAgents({ ...shared, keepAlive: true }),
      fresh: createAgents({ ...shared, keepAlive: false }),
    };
  });

  async function exchangeInTime(post: Post, { kept, fresh }: Route): Promise<Exchange> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    try {
      const limits = { post, deadline: deadline.signal, maxBodyBytes };
      const first = await exchange({ ...limits, agents: kept });
      const isStale = first.ending.kind === "broken" && first.ending.isStale;
      // On a connection of its own, since the other kept ones are as old.
      return isStale ? await exchange({ ...limits, agents: fresh }) : first;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async send(post, user) {
      const startedAt = new Date();
      const start = performance.now();
      const route = routeFor(user);
      const refusal = route.policy.refusalOfUrl(post.url);
      if (refusal !== undefined)
        return {
          kind: "made",
          result: { startedAt, durationMs: 0, error: "blocked", detail: refusal, isResponseTruncated: false },
        };
      const done = await exchangeInTime(post, route);
      const durationMs = Math.round(performance.now() - start);
      const failure = failureIn({ done, host: new URL(post.url).host, timeoutMs });
      return { kind: "made", result: { startedAt, durationMs, ...failure, ...responseIn(done) } };
    },
    close() {
      for (const isAdmin of [false, true]) {
        const { kept, fresh } = routeFor({ isAdmin });
        for (const agent of [kept.http, kept.https, fresh.http, fresh.https]) agent.destroy();
      }
    },
  };
}

/** Undefined for a 2xx answer; its body need not have been read to the end, when it was longer than what is kept. */
function failureIn({
  done: { ending, head },
  host,
  timeoutMs,
}: {
  readonly done: Exchange;
  readonly host: string;
  readonly timeoutMs: number;
}): Failure | undefined {
  if (ending.kind === "broken") return failureOf({ error: ending.error, host });
  if (ending.kind === "expired") {
    const missed = { connect: "accept a connection", head: "answer", body: "end its answer" }[ending.during];
    return { error: "timeout", detail: `${host} did not ${missed} within ${timeoutMs / 1000} s.` };
  }
  return head === undefined ? undefined : statusFailure(head.statusCode, host);
}

function statusFailure(status: number, host: string): Failure | undefined {
  if (status >= 200 && status < 300) return undefined;
  // The receiver's own words for its status could be anything.
  const answer = `${host} answered ${`${status} ${STATUS_CODES[status] ?? ""}`.trimEnd()}`;
  const isRedirect = status >= 300 && status < 400;
  return { error: "http", detail: isRedirect ? `${answer}; redirects are not followed.` : `${answer}.` };
}

type ResponseFields = Pick<
  AttemptResult,
  "statusCode" | "responseHeaders" | "responseBody" | "isResponseTruncated" | "retryAfterSeconds"
>;

/** Also of an answer that did not come to its end: what there is of it may explain why. */
function responseIn({ ending, head, body }: Exchange): ResponseFields {
  if (head === undefined) return { isResponseTruncated: false };
  const retryAfterSeconds = parseRetryAfter(head.headers["retry-after"], new Date());
  return {
    statusCode: head.statusCode,
    responseHeaders: keptHeaders(head.headers),
    responseBody: body,
    isResponseTruncated: ending.kind !== "complete",
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
}

/** The first headers, up to the limits. */
function keptHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(headers).slice(0, maxHeaders)) {
    if (value === undefined) continue;
    bytes += name.length + [value].flat().join("").length;
    if (bytes > maxHeaderBytes) break;
    kept[name] = value;
  }
  return kept;
}
