import { fixed, markdownTable, prose, ratioText, type Row } from "./markdown.ts";
import { ratioOf } from "./numbers.ts";
import type { WebhookResults } from "./webhooks/measure.ts";
import type { RetentionResult } from "./webhooks/retention.ts";

export function webhookReport({ crowd, features, replay }: WebhookResults): string {
  return [
    "## Webhooks beside others",
    prose(
      `p99 in ms from the change to its arrival, of 180 healthy receivers of as many users, at 60 changes a second: with 20 others that
      misbehave, and with none right before. Ratios of the rounds: median, least and most.`,
    ),
    markdownTable(
      ["20 of 200 receivers", "none", "some", "ratio"],
      crowd.map(({ manner, none, some, ratios }): Row => [
        manner,
        fixed(none),
        fixed(some),
        ratioText(ratioOf(ratios)),
      ]),
    ),
    prose(
      `What a feature costs, by deliveries without it right before: rows by SQL, as fast as one dispatcher delivers them.`,
    ),
    markdownTable(
      ["With", "deliveries/s", "by without", "CPU µs, dispatcher", "by without", "PostgreSQL"],
      features.map((one): Row => [
        one.feature,
        fixed(one.perSecond),
        fixed(one.rateRatio, 2),
        fixed(one.dispatcherMicros),
        fixed(one.cpuRatio, 2),
        fixed(one.postgresMicros),
      ]),
    ),
    prose(
      `A replay of ${fixed(replay.events)} events sends ${fixed(replay.perSecond)} a second. The p99 of another user's fresh deliveries is
      ${fixed(replay.paused)} ms while it is paused, and ${fixed(replay.running)} ms while it runs: ${ratioText(ratioOf(replay.ratios))}.`,
    ),
  ].join("\n\n");
}

const day = 10_000_000;

function gigabytes(value: number): string {
  return fixed(value / 1024 ** 3, 2);
}

export function retentionReport({
  deliveries,
  perSecond,
  idle,
  working,
  ratios,
  bytes,
}: RetentionResult): string {
  return [
    "## Retention",
    prose(
      `${fixed(deliveries)} old events with one delivery and one attempt each went at ${fixed(perSecond)} a second, beside 60 fresh ones a
      second. At that rate, a day of 10 million takes ${fixed(day / perSecond / 60, 1)} minutes. The p99 of the fresh ones was
      ${fixed(idle)} ms without retention, and ${fixed(working)} ms beside it: ${ratioText(ratioOf(ratios))}.`,
    ),
    prose(
      `Disk: ${gigabytes(bytes.full)} GB with all of them. After they had gone and a VACUUM, ${gigabytes(bytes.gone)} GB. With as many new
      ones, ${gigabytes(bytes.again)} GB: new rows use the space of removed ones.`,
    ),
  ].join("\n\n");
}
