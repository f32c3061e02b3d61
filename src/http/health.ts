import type { RequestListener, ServerResponse } from "node:http";
import { messageOf } from "../kit/errors.ts";
import { endsWithin } from "../kit/worker.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { securityHeaders } from "./security-headers.ts";

/**
 * A check of one part. It rejects when the part cannot do its work now; the message gives the
 * reason. `/readyz` shows a resolved text beside `ok`.
 */
export type HealthCheck = () => Promise<string | void>;

/**
 * Answers `/livez` (the event loop runs) and `/readyz` (every check passes) with 200 or 503. As in
 * Kubernetes, `?verbose` adds the reasons, and `?exclude=<check>` leaves one out. Answers
 * `/metrics` for Prometheus. Needs no token, and so has a port of its own.
 *
 * @param timeoutMs Limit of a check; a longer one has failed.
 */
export function createHealthListener(
  checks: Readonly<Record<string, HealthCheck>>,
  metrics: Pick<Metrics, "scrape" | "contentType">,
  timeoutMs = 2000,
): RequestListener {
  const shared = Object.entries(checks).map(
    ([name, check]) => [name, shareRun(() => outcomeOf(name, check, timeoutMs))] as const,
  );
  return (request, response) => {
    const [pathname, query] = (request.url ?? "").split("?", 2);
    const parameters = new URLSearchParams(query);
    const isVerbose = parameters.has("verbose");
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("Allow", "GET, HEAD");
      answer(response, 405, "method not allowed");
    } else if (pathname === "/livez") {
      answer(response, 200, "ok");
    } else if (pathname === "/readyz") {
      const excluded = parameters.getAll("exclude");
      const asked = shared.filter(([name]) => !excluded.includes(name));
      void Promise.all(asked.map(([, read]) => read())).then((outcomes) =>
        answer(response, ...readiness(outcomes, isVerbose)),
      );
    } else if (pathname === "/metrics") {
      void scrape(response, metrics);
    } else {
      answer(response, 404, "not found");
    }
  };
}

async function scrape(
  response: ServerResponse,
  metrics: Pick<Metrics, "scrape" | "contentType">,
): Promise<void> {
  try {
    const text = (await metrics.scrape()).trimEnd();
    answer(response, 200, text, metrics.contentType);
  } catch (error) {
    answer(response, 500, `the metrics could not be collected: ${messageOf(error)}`);
  }
}

interface Outcome {
  readonly name: string;
  readonly isPassed: boolean;
  /** The reason of a failure, or a remark beside `ok`. */
  readonly remark: string | undefined;
}

/**
 * Shares one run of a check between all requests that arrive during it. Anyone may ask, and each
 * check takes a connection of the database.
 */
function shareRun(run: () => Promise<Outcome>): () => Promise<Outcome> {
  let underWay: Promise<Outcome> | undefined;
  return () => (underWay ??= run().finally(() => (underWay = undefined)));
}

async function outcomeOf(name: string, check: HealthCheck, timeoutMs: number): Promise<Outcome> {
  try {
    const answering = check();
    const isInTime = await endsWithin(timeoutMs, answering);
    if (!isInTime) return { name, isPassed: false, remark: `no answer within ${timeoutMs} ms` };
    return { name, isPassed: true, remark: (await answering) ?? undefined };
  } catch (error) {
    return { name, isPassed: false, remark: messageOf(error) };
  }
}

function readiness(outcomes: readonly Outcome[], isVerbose: boolean): [status: number, text: string] {
  const isReady = outcomes.every(({ isPassed }) => isPassed);
  const summary = isReady ? "ok" : "not ready";
  const lines = outcomes.map(({ name, isPassed, remark }) =>
    [isPassed ? `[+] ${name} ok` : `[-] ${name} failed`, ...(remark === undefined ? [] : [remark])].join(
      ": ",
    ),
  );
  return [isReady ? 200 : 503, isVerbose ? [...lines, summary].join("\n") : summary];
}

function answer(
  response: ServerResponse,
  status: number,
  text: string,
  type = "text/plain; charset=utf-8",
): void {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  for (const [name, value] of Object.entries(securityHeaders())) response.setHeader(name, value);
  response.end(`${text}\n`);
}
