import { createRandom } from "../support/random.ts";

interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
}

/**
 * Returns nearly valid requests, the same for the same seed. Real endpoints and valid bodies get
 * random odd methods, ids, queries, fields and values.
 */
export function fuzzedRequests({
  seed,
  count,
  ids,
}: {
  readonly seed: number;
  readonly count: number;
  readonly ids: Readonly<Record<"thing" | "webhook" | "delivery", number>>;
}): readonly FuzzedRequest[] {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;

  const text = (): string => Array.from({ length: below(12) }, () => pick(characters)).join("");
  const value = (depth = 0): unknown => {
    const kind = below(depth > 3 ? 8 : 10);
    if (kind < 3) return pick(oddValues);
    if (kind < 6) return text();
    if (kind < 8) return (random() - 0.5) * 10 ** below(30);
    if (kind === 8) return Array.from({ length: below(4) }, () => value(depth + 1));
    return Object.fromEntries(
      Array.from({ length: below(4) }, () => [pick([...fields, text()]), value(depth + 1)]),
    );
  };
  const id = (of: number): string =>
    random() < 0.6 ? String(of) : encodeURIComponent(wellFormed(String(value(4))));
  const query = (): string =>
    Array.from(
      { length: below(4) },
      () => `${pick(parameters)}=${encodeURIComponent(wellFormed(String(value(4))))}`,
    ).join("&");
  const body = (valid: Readonly<Record<string, unknown>>): string => {
    const changes = Object.fromEntries(Array.from({ length: below(4) }, () => [pick(fields), value()]));
    const whole = JSON.stringify(random() < 0.1 ? value() : { ...valid, ...changes });
    return random() < 0.1 ? whole.slice(0, below(whole.length + 1)) : whole;
  };

  return Array.from({ length: count }, (_, index): FuzzedRequest => {
    const thing = { title: `${index} ${text()}` };
    const webhook = { url: nowhere, resource: "things", events: ["on_create"] };
    const [methods, path, valid] = pick<() => readonly [string, string, object?]>([
      () => ["GET", "/whoami"],
      () => ["GET", "/resources"],
      () => ["GET POST POST", "/resources/things", thing],
      () => ["GET PUT PUT PUT", `/resources/things/${id(ids.thing)}`],
      () => ["GET POST", "/webhooks", webhook],
      () => ["GET PUT", `/webhooks/${id(ids.webhook)}`],
      () => ["DELETE", pick([`/webhooks/${id(index)}`, `/resources/things/${id(index)}`])],
      () => ["GET", "/webhook-deliveries"],
      () => ["GET", `/webhook-deliveries/${id(ids.delivery)}`],
      () => ["POST", `/webhook-deliveries/${id(ids.delivery)}/retry`],
      () => ["GET POST", `/${encodeURIComponent(wellFormed(text()))}`, thing],
    ])();
    const method = random() < 0.05 ? pick(["PATCH", "OPTIONS", "DELETE", "PUT"]) : pick(methods.split(" "));
    const search = query();
    const hasBody = method === "POST" || method === "PUT" || random() < 0.1;
    return {
      method,
      path: search === "" ? path : `${path}?${search}`,
      body: hasBody ? body({ ...valid }) : undefined,
    };
  });
}

/** A port of this machine without a receiver, since created webhooks are sent. */
const nowhere = "http://127.0.0.1:1/";

/** Half of a surrogate pair cannot be percent-encoded. */
const wellFormed = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, "\ufffd");

const characters = [
  ..."aZ09 _-%\\'\"/?#&=.:;,<>{}[]()\u0000\u0001\n\r\t\u00e9\u200f\ufeff\uffff".split(""),
  ..."🐎 \ud800 \udc00 __proto__ ${x}".split(" "),
];

const fields = [
  ..."id title body size big ratio price is_done due_at meta data token state tags parent_id user_id created_at".split(
    " ",
  ),
  ..."updated_at url resource events is_active description secret __proto__ constructor toString".split(" "),
];

const parameters = "page per_page search webhook_id status event_id user_id __proto__ x".split(" ");

const oddValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.1,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  1e308,
  "",
  " ",
  "1e400",
  "NaN",
  "things",
  "on_create",
  "open",
  "failed",
  nowhere,
  "2026-03-28T14:30:00.123+00:00",
  "0000-00-00",
  "00000000-0000-4000-8000-000000000000",
  "AAAA",
  "x".repeat(3_000),
  [],
  {},
  ["on_create"],
];
