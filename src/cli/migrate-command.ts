import type { Command } from "commander";
import {
  printJson,
  replaceControlCharacters,
  withOpened,
  type CommandOptions,
  type JsonOption,
  type OutputRow,
} from "../kit/cli-output.ts";
import { OperatorError } from "../kit/errors.ts";
import type { AdminContext } from "./context.ts";
import { applyMigration, type MigrationReport } from "../app/apply-migration.ts";
import { mayLose, planMigration, type MigrationPlan } from "../app/plan-migration.ts";
import { lockTimeoutMs, type Step } from "../migration/core-migrations.ts";
import { handSteps, loadHandMigrations, type HandMigration } from "../migration/hand-migrations.ts";
import { loadDefinitions } from "../mapping/load.ts";

interface Options extends JsonOption {
  readonly plan?: true;
  readonly allowDestructive?: true;
}

export function addMigrateCommand(
  program: Command,
  { open, terminal }: CommandOptions<Pick<AdminContext, "config" | "url" | "log" | "actor" | "close">>,
): void {
  program
    .command("migrate")
    .description("bring the service's tables and the managed tables to the mapping files")
    .option("--plan", "print the SQL and change nothing")
    .option(
      "--allow-destructive",
      "also make the changes that lose data or events, or drop an index or constraint of the service",
    )
    .option("--json", "print JSON")
    .action((options: Options) =>
      withOpened(open, async ({ config, url, log, actor }) => {
        const definitions = await loadDefinitions(config.configDir);
        const byHand = await loadHandMigrations(config.configDir);
        if (options.plan) {
          const plan = await planMigration({ url, definitions, byHand });
          if (options.json) printJson(terminal, jsonOfPlan(plan));
          else terminal.stdout(textOfPlan(plan));
          if (plan.impossible.length > 0)
            throw new OperatorError("The existing rows and objects do not allow the migration.");
          return;
        }
        const report = await applyMigration({
          url,
          definitions,
          byHand,
          allowDestructive: options.allowDestructive === true,
          // The operator has to find the row that prevents the migration.
          showsValues: true,
          log,
          actor,
        });
        if (options.json) printJson(terminal, jsonOfReport(report));
        else terminal.stdout(textOfReport(report));
      }),
    );
}

/** Returns a script for `psql`, with remarks as comments. */
function textOfPlan({ byHand, core, steps, losses, impossible, notes, leftAlone }: MigrationPlan): string {
  // A file may rename a part that a plan would drop.
  const unless = byHand.length === 0 ? "" : ", unless the migrations by hand keep it";
  const remarks = [
    ...impossible.map((line) => `CANNOT BE DONE: ${line}`),
    ...losses.map((line) => `NEEDS --allow-destructive${unless}: ${line}`),
    ...notes.map((line) => `Note: ${line}`),
    ...leftAlone.map((line) => `Left alone: ${line}`),
    ...(steps.some((step) => !core.includes(step) && mayLose(step)) ? [unseen] : []),
  ].map((line) => `-- ${oneLine(line)}`);
  if (steps.length === 0 && byHand.length === 0) return [...remarks, "-- Nothing to do.", ""].join("\n");
  // The core migrations create the table that records migrations by hand.
  const first = byHand.length === 0 ? [] : core;
  const rest = steps.filter((step) => !first.includes(step));
  // Without it, psql continues after a failed file, records it as applied, and exits with 0.
  const head = [...remarks, "\\set ON_ERROR_STOP on"].join("\n");
  const hand = byHand.flatMap((migration) => textOfSteps(withEnd(migration), migration.isInTransaction));
  return `${[head, ...textOfSteps(first), ...hand, ...textOfSteps(rest)].join("\n\n")}\n`;
}

const unseen =
  "Note: By itself, this script looks at no rows: a column that is empty now goes with the values that it has by then, and another type takes from values what it does not hold. svc-admin migrate looks again.";

/** Undoes the settings that a file makes with SET, as `migrate` does. */
function withEnd(migration: HandMigration): readonly Step[] {
  const { work, record } = handSteps(migration);
  // Deferred triggers and constraints run with the file's settings.
  const before = migration.isInTransaction ? "SET CONSTRAINTS ALL IMMEDIATE;\n" : "";
  const sql = `${before}RESET SESSION AUTHORIZATION;\nRESET ROLE;\nRESET ALL`;
  return [work, { title: "end its settings", sql }, record];
}

function textOfSteps(steps: readonly Step[], isInTransaction = true): readonly string[] {
  if (steps.length === 0) return [];
  const statements = steps.map(({ title, sql }) =>
    isTitleStatement(title, sql) ? ended(sql) : `-- ${oneLine(title)}\n${ended(sql)}`,
  );
  if (!isInTransaction) return ["SET search_path = public;", ...statements];
  // As in `migrate`: the zone of the session would affect the conversion of a day to a time. Other
  // settings give the definitions on record another form.
  const settings = [
    `SET LOCAL lock_timeout = ${lockTimeoutMs};`,
    "SET LOCAL search_path = public;",
    "SET LOCAL TIME ZONE 'UTC';",
    "SET LOCAL datestyle = 'ISO';",
    "SET LOCAL quote_all_identifiers = off;",
  ];
  return ["BEGIN;", ...settings, ...statements, "COMMIT;"];
}

/**
 * Ends the SQL of a step with a semicolon. After a comment, the semicolon would be a part of it.
 */
function ended(sql: string): string {
  return sql.slice(sql.lastIndexOf("\n") + 1).includes("--") ? `${sql}\n;` : `${sql};`;
}

function isTitleStatement(title: string, sql: string): boolean {
  return sql.replace(/\s+/g, " ").startsWith(title);
}

function jsonOfPlan({ byHand, steps, losses, impossible, notes, leftAlone }: MigrationPlan): OutputRow {
  const given = byHand.map(({ name, sql, isInTransaction }) => ({
    name,
    sql,
    in_transaction: isInTransaction,
  }));
  return { by_hand: given, steps, losses, impossible, notes, left_alone: leftAlone };
}

function textOfReport({ steps, notes, leftAlone, durationMs }: MigrationReport): string {
  const done = steps.length === 0 ? "Nothing to do." : `Migrated in ${(durationMs / 1000).toFixed(1)} s.`;
  return [
    ...steps.map(({ title }) => `  ${oneLine(title)}`),
    ...notes.map((line) => `Note: ${oneLine(line)}`),
    ...leftAlone.map((line) => `Left alone: ${oneLine(line)}`),
    done,
    "",
  ].join("\n");
}

function jsonOfReport({ steps, notes, leftAlone, durationMs }: MigrationReport): OutputRow {
  return { steps: steps.map(({ title }) => title), notes, left_alone: leftAlone, duration_ms: durationMs };
}

/**
 * Removes line breaks, which would end a comment, and control characters, which could steer the
 * terminal. Names of tables and keys of rows may contain both.
 */
function oneLine(text: string): string {
  return replaceControlCharacters(text.replace(/\s*[\r\n]+\s*/g, " "));
}
