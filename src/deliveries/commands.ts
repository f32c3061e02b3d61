import { Option, type Command } from "commander";
import { parseCount, parseId, parseRowId, parseTime, parseWords } from "../kit/cli-arguments.ts";
import { printRow, printRows, withOpened, type JsonOption, type CommandOptions } from "../kit/cli-output.ts";
import type { CommandContext } from "../db/command-context.ts";
import type { EventKind } from "../events/event.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import { deliveredEvents, deliveryStatuses, type DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilter } from "./history-texts.ts";
import type { DeliveryRow } from "./delivery-row.ts";
import { createDeliveryHistory, type DeliveryHistory } from "./history.ts";
import { narrowingOf } from "./narrow-texts.ts";
import { createReadRight } from "./read-right.ts";
import { addReplayCommand } from "./replay/replay-command.ts";
import { presentAttempt, presentDelivery } from "./delivery-json.ts";

/** Dependencies of the commands on an open database and the configuration. */
export interface DeliveryCommandsContext extends CommandContext {
  readonly config: { readonly webhooks: { readonly manualRetryLimit: number } };
  /** Reads the rules of access from the mapping files. */
  readonly loadEligibility: () => Promise<Pick<Eligibility, "judge">>;
}

type DeliveryCommandsOptions = CommandOptions<DeliveryCommandsContext>;

/** Adds `deliveries list`, `show`, `retry` and `replay` (docs/svc-admin.md, "Commands"). */
export function addDeliveryCommands(program: Command, options: DeliveryCommandsOptions): void {
  const deliveries = program
    .command("deliveries")
    .description("look at webhook deliveries, and retry failed ones");
  deliveries
    .command("list")
    .description("list deliveries, newest first")
    .option(
      "--status <status>",
      `${deliveryStatuses.join(", ")}; several with commas`,
      parseWords(deliveryStatuses),
    )
    .option("--webhook <id>", "of one webhook", parseId)
    .option("--resource <name>", "of one resource")
    .addOption(new Option("--event <event>", "of one trigger, or operational event").choices(deliveredEvents))
    .option("--record <id>", "of the record with this id")
    .option("--event-id <id>", "of one event", parseRowId)
    .option("--created-after <time>", "made after a time, or within a duration such as 24h", parseTime)
    .option("--created-before <time>", "made before a time", parseTime)
    .option("--url <url>", "that go to exactly this URL")
    .option("--limit <count>", "at most so many", parseCount, 100)
    .option("--json", "print JSON")
    .action((given: ListOptions) => list(options, given));
  deliveries
    .command("show")
    .description("show a delivery and its attempts")
    .argument("<id>", "id of the delivery", parseRowId)
    .option("--json", "print JSON")
    .action((id: string, { json = false }: JsonOption) => show(options, id, json));
  deliveries
    .command("retry")
    .description("send a finished delivery again as a new one, or a retrying one at once")
    .argument("<id>", "id of the delivery", parseRowId)
    .option("--json", "print JSON")
    .action((id: string, { json = false }: JsonOption) => retry(options, id, json));
  addReplayCommand(deliveries, options);
}

interface ListOptions extends JsonOption {
  readonly status?: readonly DeliveryStatus[];
  readonly webhook?: number;
  readonly resource?: string;
  readonly event?: EventKind;
  readonly record?: string;
  readonly eventId?: string;
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly url?: string;
  readonly limit: number;
}

async function list(
  { open, terminal }: DeliveryCommandsOptions,
  { limit, json = false, ...given }: ListOptions,
): Promise<void> {
  const {
    records,
    total = 0,
    isEstimate,
  } = await withHistory(open, (history) => history.list({ filter: filterOf(given), skip: 0, take: limit }));
  printRows(terminal, records.map(json ? presentDelivery : summaryOf), {
    json,
    empty: "There are no such deliveries.",
    widths,
  });
  if (json || records.length >= total) return;
  const all = `${isEstimate ? "about " : ""}${total.toLocaleString("en")}`;
  terminal.stderr(`These are the newest ${records.length.toLocaleString("en")} of ${all}.\n`);
}

async function show({ open, terminal }: DeliveryCommandsOptions, id: string, json: boolean): Promise<void> {
  const { delivery, attempts } = await withHistory(open, async (history) => ({
    delivery: await getDelivery(history, id),
    attempts: (await history.attemptsOf(id)).map(presentAttempt),
  }));
  if (json) return printRow(terminal, { ...presentDelivery(delivery), attempts }, { json });
  printRow(terminal, presentDelivery(delivery), { json });
  // Only `--json` shows receivers' answers, which can be 16 KiB each.
  const lines = attempts.map((attempt) => ({
    try: attempt["number"],
    started_at: String(attempt["started_at"]).slice(0, 19).replace("T", " "),
    trigger: attempt["trigger"],
    address: attempt["address"],
    "dns/connect/tls/first/all ms": ["dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "duration_ms"]
      .map((name) => (attempt[name] as number | null) ?? "-")
      .join("/"),
    status: attempt["status_code"],
    error: attempt["error"],
  }));
  printRows(terminal, lines, { json, empty: "No attempt has been made yet.", widths: attemptWidths });
}

async function retry({ open, terminal }: DeliveryCommandsOptions, id: string, json: boolean): Promise<void> {
  const delivery = await withHistory(open, async (history, context) => {
    const { manualRetryLimit: limit } = context.config.webhooks;
    const hasPrevious = await readsPrevious(context, await getDelivery(history, id));
    const answer = await history.retry({ id, limit, hasPrevious });
    if (answer.kind === "refused") throw new OperatorError(answer.reason);
    return answer.delivery;
  });
  printRow(terminal, presentDelivery(delivery), { json });
}

/**
 * Returns whether the subscriber may see the old row of an update. False makes a retry omit the old
 * row. Undefined when it cannot be decided now.
 *
 * @throws OperatorError when the API would refuse the retry to every caller: see `ReadRight`.
 */
async function readsPrevious(
  { sql, loadEligibility }: DeliveryCommandsContext,
  delivery: DeliveryRow,
): Promise<boolean | undefined> {
  const readRight = createReadRight({ sql, eligibility: await loadEligibility() });
  if ((await readRight.ofSubscriber(delivery)) === false)
    throw new OperatorError("The subscriber may no longer see this record.");
  return readRight.ofSubscriber(delivery, "previous");
}

async function withHistory<T>(
  open: DeliveryCommandsOptions["open"],
  work: (history: DeliveryHistory, context: DeliveryCommandsContext) => Promise<T>,
): Promise<T> {
  return withOpened(open, (context) => work(createDeliveryHistory(context), context));
}

async function getDelivery(history: DeliveryHistory, id: string): Promise<DeliveryRow> {
  const delivery = await history.find(id);
  if (delivery === undefined)
    throw new OperatorError(`There is no delivery with the id ${id}. See: svc-admin deliveries list`);
  return delivery;
}

/** Characters of each column: with the borders, a table is 98 wide. */
const widths = [9, 7, 20, 10, 9, 5, 16];
const attemptWidths = [4, 19, 9, 15, 15, 6, 11];

/** Returns the columns that fit on a line of a terminal. */
function summaryOf(delivery: DeliveryRow): Readonly<Record<string, unknown>> {
  const { id, subscriptionId, resource, event, recordId, status, attempt, maxAttempts, createdAt } = delivery;
  return {
    id,
    webhook: subscriptionId,
    event: `${resource}.${event}`,
    record: recordId,
    status,
    tries: `${attempt}/${maxAttempts}`,
    created_at: createdAt.toISOString().slice(0, 16).replace("T", " "),
  };
}

function filterOf({
  webhook: subscriptionId,
  status: statuses,
  eventId,
  record: recordId,
  ...narrowing
}: Omit<ListOptions, "limit" | "json">): DeliveryFilter {
  return { subscriptionId, eventId, statuses, narrowing: narrowingOf({ ...narrowing, recordId }) };
}
