import { STATUS_CODES, type IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import { createAgents, type Agents } from "../../outbound/connections.ts";
import type { AttemptResult } from "../delivery.ts";
import { exchange, type Exchange, type ExchangeOptions, type Post } from "./exchange.ts";
import { failureOf, type Failure } from "./failure.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { createHandshakeRests, type HandshakeRests } from "../../outbound/handshake-rests.ts";
import { createSharedLookup, type AddressLookup } from "../../outbound/shared-lookup.ts";
import {
  createTargetPolicy,
  perUser,
  type ReceiverNetworks,
  type TargetPolicy,
} from "../../outbound/targets.ts";

/** Limits of the stored part of an answer, for any answer of a receiver. */
const maxBodyBytes = 16 * 1024;
const maxHeaders = 64;
const maxHeaderBytes = 8 * 1024;

const unmadeReasons = {
  connection: "No connection to the receiver was free.",
  "look-up": "Other names of the same user were being looked up.",
  handshake: "A TLS handshake with a receiver of the same user took too much time.",
} as const;

export type SendResult =
  | { readonly kind: "made"; readonly result: AttemptResult }
  /**
   * No attempt was made, for a reason on this side. This does not count as an attempt, and the
   * delivery is soon tried again.
   */
  | { readonly kind: "unmade"; readonly reason: string };

/** Makes attempts. */
export interface Sender {
  /**
   * Makes one attempt. Never rejects: the result holds every failure.
   *
   * @param user Owner of the webhook, as of now.
   */
  send(post: Post, user: { readonly id: number; readonly isAdmin: boolean }): Promise<SendResult>;
  /** Closes every connection, including those in use. Call it when no attempt is in flight. */
  close(): void;
}

/** Permitted targets of an attempt, and the agents that connect to them. */
interface Route {
  readonly policy: TargetPolicy;
  readonly kept: Agents;
  readonly fresh: Agents;
}

/**
 * Creates a sender that makes one POST per webhook: no redirects, no cookies, no proxy from the
 * environment. It repeats a request only when a kept connection was closed before the receiver can
 * have seen the request.
 *
 * @param timeoutMs Limit of a whole attempt: DNS, connect, TLS, response head and body.
 * @param maxSockets Most connections to one receiver; later attempts wait for a connection within
 *   their time limit.
 */
export function createSender({
  timeoutMs,
  maxSockets,
  lookup = createSharedLookup(),
  rests = createHandshakeRests(),
  ...networks
}: ReceiverNetworks & {
  readonly timeoutMs: number;
  readonly maxSockets: number;
  readonly lookup?: AddressLookup;
  readonly rests?: HandshakeRests;
}): Sender {
  // Separate agents per policy: a kept connection is reused without another check of its address.
  const routeFor = perUser(networks, (allowed): Route => {
    const policy = createTargetPolicy(allowed);
    const shared = { policy, maxSockets, lookup, rests };
    return {
      policy,
      kept: createAgents({ ...shared, keepAlive: true }),
      fresh: createAgents({ ...shared, keepAlive: false }),
    };
  });

  async function exchangeInTime(
    post: ExchangeOptions["post"],
    userId: number,
    { kept, fresh }: Route,
  ): Promise<Exchange> {
    const start = performance.now();
    const shared = { post, userId, maxBodyBytes };
    const first = await exchange({ ...shared, timeoutMs, agents: kept });
    if (first.ending.kind !== "broken" || !first.ending.isStale) return first;
    // Repeats on a new connection, since the other kept connections are as old.
    const leftMs = timeoutMs - (performance.now() - start);
    return exchange({ ...shared, timeoutMs: Math.max(leftMs, 1), agents: fresh });
  }

  return {
    async send(post, user) {
      const route = routeFor(user);
      const refusal = route.policy.refusalOfUrl(post.url);
      if (refusal !== undefined) {
        const refused = { error: "blocked", detail: refusal, isResponseTruncated: false } as const;
        return { kind: "made", result: { startedAt: new Date(), durationMs: 0, ...refused } };
      }
      // Parsed, because a user may write HTTPS as well.
      const url = new URL(post.url);
      if (url.protocol === "https:" && !(await rests.pass(user.id)))
        return { kind: "unmade", reason: unmadeReasons.handshake };
      // Begins after the wait, which is not the receiver's. Breakers count slow failures.
      const startedAt = new Date();
      const start = performance.now();
      const done = await exchangeInTime({ ...post, url }, user.id, route);
      if (done.ending.kind === "unmade")
        return { kind: "unmade", reason: unmadeReasons[done.ending.waitedFor] };
      const durationMs = Math.round(performance.now() - start);
      const failure = failureIn(done, { url: post.url, timeoutMs, isAdmin: user.isAdmin });
      return {
        kind: "made",
        result: { startedAt, durationMs, ...failure, ...responseIn(done), ...done.timings },
      };
    },
    close() {
      for (const isAdmin of [false, true]) {
        const { kept, fresh } = routeFor({ isAdmin });
        for (const agent of [kept.http, kept.https, fresh.http, fresh.https]) agent.destroy();
      }
    },
  };
}

/**
 * Returns the failure of an exchange; undefined for a 2xx answer, even when its body was cut at the
 * limit.
 */
function failureIn(
  { ending, head }: Exchange,
  {
    url,
    timeoutMs,
    isAdmin,
  }: { readonly url: string; readonly timeoutMs: number; readonly isAdmin: boolean },
): Failure | undefined {
  const isAnswered = ending.kind === "complete" || ending.kind === "cut";
  if (isAnswered && head !== undefined && isSuccess(head.statusCode)) return undefined;
  const { host } = new URL(url);
  if (ending.kind === "broken") return failureOf({ error: ending.error, host, isAdmin });
  if (ending.kind === "expired") {
    const missed = { connect: "accept a connection", head: "answer", body: "end its answer" }[ending.during];
    return { error: "timeout", detail: `${host} did not ${missed} within ${timeoutMs / 1000} s.` };
  }
  return head === undefined ? undefined : statusFailure(head.statusCode, host);
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

function statusFailure(status: number, host: string): Failure {
  // Uses Node's reason phrase, because the receiver's own could be any text.
  const answer = `${host} answered ${`${status} ${STATUS_CODES[status] ?? ""}`.trimEnd()}`;
  const isRedirect = status >= 300 && status < 400;
  return { error: "http", detail: isRedirect ? `${answer}; redirects are not followed.` : `${answer}.` };
}

type ResponseFields = Pick<
  AttemptResult,
  "statusCode" | "responseHeaders" | "responseBody" | "isResponseTruncated" | "retryAfterSeconds"
>;

/**
 * Returns the fields of the answer. An incomplete answer counts too, since it may explain a
 * failure.
 */
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

/** Returns the first headers, up to the limits. */
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
