import { InvalidArgumentError, Option, type Command } from "commander";
import type { Pool } from "pg";
import { printRow, printRows, withOpened, type Terminal } from "../kit/cli-output.ts";
import { createIndexSql, createTransact, type Sql } from "../db/sql.ts";
import { OperatorError } from "../kit/errors.ts";
import { deliveryStatuses, type DeliveryStatus } from "./delivery.ts";
import { createDeliveryHistory, type DeliveryHistory, type DeliveryRow } from "./history.ts";
import { rowIdOf, presentAttempt, presentDelivery } from "./delivery-json.ts";

/** The parts of an open database that the commands use. */
export interface DeliveryCommandsContext {
  readonly database: { readonly pool: Pool };
  readonly sql: Sql;
  readonly config: { readonly webhooks: { readonly manualRetryLimit: number } };
  close(): Promise<void>;
}

export interface DeliveryCommandsOptions {
  readonly open: () => Promise<DeliveryCommandsContext>;
  readonly terminal: Terminal;
}

/** Adds `deliveries list`, `show` and `retry` (docs/svc-admin.md, "Commands"). */
export function addDeliveryCommands(program: Command, options: DeliveryCommandsOptions): void {
  const deliveries = program
    .command("deliveries")
    .description("look at webhook deliveries, and retry failed ones");
  deliveries
    .command("list")
    .description("list deliveries, newest first")
    .addOption(new Option("--status <status>", "only those with the status").choices(deliveryStatuses))
    .option("--limit <count>", "at most so many", countOf, 100)
    .option("--json", "print JSON")
    .action((given: ListOptions) => list(options, given));
  deliveries
    .command("show")
    .description("show a delivery and its attempts")
    .argument("<id>", "id of the delivery", parseId)
    .option("--json", "print JSON")
    .action((id: string, { json = false }: JsonOption) => show(options, id, json));
  deliveries
    .command("retry")
    .description("make a new delivery of a failed one")
    .argument("<id>", "id of the failed delivery", parseId)
    .option("--json", "print JSON")
    .action((id: string, { json = false }: JsonOption) => retry(options, id, json));
}

interface JsonOption {
  readonly json?: boolean;
}

interface ListOptions extends JsonOption {
  readonly status?: DeliveryStatus;
  readonly limit: number;
}

async function list(
  { open, terminal }: DeliveryCommandsOptions,
  { status, limit, json = false }: ListOptions,
): Promise<void> {
  const { rows, total, isEstimate } = await withHistory(open, (history) =>
    history.list({ filter: { status }, skip: 0, take: limit }),
  );
  printRows(terminal, rows.map(json ? presentDelivery : summaryOf), {
    json,
    empty: "There are no deliveries.",
  });
  if (json || rows.length >= total) return;
  const all = `${isEstimate ? "about " : ""}${total.toLocaleString("en")}`;
  terminal.stderr(`These are the newest ${rows.length.toLocaleString("en")} of ${all}.\n`);
}

async function show({ open, terminal }: DeliveryCommandsOptions, id: string, json: boolean): Promise<void> {
  const { delivery, attempts } = await withHistory(open, async (history) => ({
    delivery: await getDelivery(history, id),
    attempts: (await history.attemptsOf(id)).map(presentAttempt),
  }));
  if (json) return printRow(terminal, { ...presentDelivery(delivery), attempts }, { json });
  printRow(terminal, presentDelivery(delivery), { json });
  // Only `--json` shows receivers' answers, which can be 16 KiB each.
  const lines = attempts.map(({ number, started_at, duration_ms, status_code, error }) => ({
    number,
    started_at,
    duration_ms,
    status_code,
    error,
  }));
  printRows(terminal, lines, { json, empty: "No attempt has been made yet." });
}

async function retry({ open, terminal }: DeliveryCommandsOptions, id: string, json: boolean): Promise<void> {
  const delivery = await withHistory(open, async (history, limit) => {
    await getDelivery(history, id);
    const answer = await history.retry({ id, limit });
    if (answer.kind === "refused") throw new OperatorError(answer.reason);
    return answer.delivery;
  });
  printRow(terminal, presentDelivery(delivery), { json });
}

async function withHistory<T>(
  open: DeliveryCommandsOptions["open"],
  work: (history: DeliveryHistory, retryLimit: number) => Promise<T>,
): Promise<T> {
  return withOpened(open, ({ database, sql, config }) =>
    work(
      createDeliveryHistory({
        sql,
        listSql: createIndexSql(database.pool),
        transact: createTransact(database.pool),
      }),
      config.webhooks.manualRetryLimit,
    ),
  );
}

async function getDelivery(history: DeliveryHistory, id: string): Promise<DeliveryRow> {
  const delivery = await history.find(id);
  if (delivery === undefined)
    throw new OperatorError(`There is no delivery with the id ${id}. See: svc-admin deliveries list`);
  return delivery;
}

/** Returns the columns that fit on a line of a terminal. */
function summaryOf(delivery: DeliveryRow): Readonly<Record<string, unknown>> {
  const {
    id,
    subscription_id,
    event_uuid,
    status,
    attempt,
    max_attempts,
    next_attempt_at,
    last_error,
    created_at,
  } = presentDelivery(delivery);
  return {
    id,
    subscription_id,
    event_uuid,
    status,
    attempts: `${String(attempt)}/${String(max_attempts)}`,
    next_attempt_at,
    last_error,
    created_at,
  };
}

function parseId(text: string): string {
  const id = rowIdOf(text);
  if (id === undefined) throw new InvalidArgumentError("A delivery id is a positive integer.");
  return id;
}

function countOf(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError("It must be an integer from 1 to 99999.");
  return Number(text);
}
