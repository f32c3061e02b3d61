import { rowOfSnapshot } from "./snapshot-row.ts";
import { serviceResource } from "./event.ts";
import type { OutboxEvent } from "./outbox.ts";
import { databaseFaultOf, isTimeLimitOver } from "../db/database-fault.ts";
import type { TextSql } from "../db/text-sql.ts";
import { findRelatedRecords } from "./related-records.ts";
import { messageWithCause } from "../kit/errors.ts";
import { Decimal } from "../kit/prisma-values.ts";
import type { Delegate } from "../db/models-client.ts";
import type { Definition, Definitions, Field, Relation, Row } from "../mapping/definition.ts";
import { isUniqueAlone } from "../mapping/keys.ts";
import { baseQueryOf } from "../resources/query.ts";
import { pathsOf } from "../querying/shown-need.ts";
import { createTransform } from "../querying/transform.ts";
import type { Log } from "../telemetry/log.ts";

/** The record of an event, or the reason why the transform gives none now. */
export type Presented =
  | {
      readonly kind: "presented";
      readonly data: unknown;
      /** The old record of an update; undefined when no old row is kept. */
      readonly previous?: unknown;
    }
  | { readonly kind: "refused"; readonly reason: string };

/** The result for events of one resource that were read together. */
export type PresentedAll =
  /** One answer per event, in order. */
  | { readonly kind: "each"; readonly answers: readonly Presented[] }
  /**
   * No event can be presented. `isPassing`: the database is unavailable, which is no fault of the
   * resource. `isTooSlow`: a statement took too long, perhaps because of one of the events.
   */
  | {
      readonly kind: "none";
      readonly reason: string;
      readonly isPassing: boolean;
      readonly isTooSlow?: boolean;
    };

/** Returns the Prisma delegate of a model. */
type DelegateOf = (model: string) => Promise<Delegate>;

/**
 * Turns captured events of one resource into the JSON that the API would answer for the same rows.
 * Relations that the transform names are read now, and are null when they are gone.
 *
 * It throws when the related records exceed a connection's limit, and fewer events may fit.
 */
export function createEventPresenter({
  definitions,
  delegateOf,
  sql,
  log,
}: {
  readonly definitions: Definitions;
  /** Reads related records: over connections of the relay or of requests. */
  readonly sql: TextSql;
  /** Reads related records whose `include` has arguments that only Prisma supports. */
  readonly delegateOf: DelegateOf;
  /** Logs the old rows that were left out, once for events presented together. */
  readonly log?: Pick<Log, "warn">;
}): (resource: string, events: readonly Captured[]) => Promise<PresentedAll> {
  const presenters = new Map(
    [...definitions.values()].map((definition) => [
      definition.name,
      createPresenter({ definition, definitions, delegateOf, sql }),
    ]),
  );

  return async (resource, events) => {
    const present = presenters.get(resource);
    if (present === undefined && resource === serviceResource)
      return { kind: "each", answers: events.map(({ snapshot }) => ({ kind: "presented", data: snapshot })) };
    if (present === undefined)
      return {
        kind: "none",
        reason: `The resource ${resource} is not in the mapping files.`,
        isPassing: false,
      };
    try {
      const { answers, unpresented } = await presentBoth(present, events);
      if (unpresented.length > 0)
        log?.warn(
          { event: "relay.no_previous", resource, reason: unpresented[0], events: unpresented.length },
          "old rows cannot be presented; their events go without them",
        );
      return { kind: "each", answers };
    } catch (error) {
      const { kind } = databaseFaultOf(error);
      if (kind === "too_large") throw error;
      return {
        kind: "none",
        reason: messageWithCause(error),
        isPassing: kind === "unavailable",
        isTooSlow: isTimeLimitOver(error),
      };
    }
  };
}

/** The captured row of an event, and the old row of an update. */
export type Captured = Pick<OutboxEvent, "snapshot" | "previous">;
type PresentEvents = (events: readonly Captured[]) => Promise<readonly Presented[]>;

/**
 * Presents the old rows together with the new ones, so that relations are read once. An event whose
 * old row cannot be presented is presented without it. An old row never changes, so the event would
 * otherwise wait forever.
 *
 * @returns The presented events, and the reasons why old rows were left out.
 */
async function presentBoth(
  present: PresentEvents,
  events: readonly Captured[],
): Promise<{ readonly answers: readonly Presented[]; readonly unpresented: readonly string[] }> {
  const previous = events.flatMap(({ previous: snapshot }, index) =>
    snapshot === undefined || snapshot === null ? [] : [{ index, snapshot }],
  );
  const answers = [...(await present([...events, ...previous]))];
  const old = answers.splice(events.length);
  const unpresented: string[] = [];
  previous.forEach(({ index }, place) => {
    const [now, before] = [answers[index], old[place]];
    if (now?.kind !== "presented" || before === undefined) return;
    if (before.kind === "presented") answers[index] = { ...now, previous: before.data };
    else unpresented.push(before.reason);
  });
  return { answers, unpresented };
}

function createPresenter({
  definition,
  definitions,
  delegateOf,
  sql,
}: {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly delegateOf: DelegateOf;
  readonly sql: TextSql;
}): PresentEvents {
  const transform = createTransform(definition, definitions);
  const visible = relationsVisible(definition);

  return async (events) => {
    const decoded = events.map((event) => tryTo(() => rowOfSnapshot(definition, event.snapshot)));
    const rows = decoded.flatMap((answer) => (answer.kind === "done" ? [answer.value] : []));
    const related = new Map<Row, Record<string, unknown>>(rows.map((row) => [row, {}]));
    const include = baseQueryOf(definition).include ?? {};
    for (const relation of visible) {
      const args = include[relation.name];
      if (args === undefined || args === false) continue;
      const found =
        (await findRelatedRecords(sql, { definition, definitions, relation, args, rows })) ??
        (await findRelated({ relation, args, rows, definitions, delegateOf }));
      rows.forEach((row, index) => {
        (related.get(row) as Record<string, unknown>)[relation.name] = found[index];
      });
    }
    return decoded.map((answer) => {
      if (answer.kind === "failed") return refused(answer.reason);
      const presented = tryTo(() => transform({ ...answer.value, ...related.get(answer.value) }));
      return presented.kind === "done"
        ? { kind: "presented", data: presented.value }
        : refused(presented.reason);
    });
  };
}

/**
 * Returns whether messages show each captured field unchanged. Such messages are not smaller than
 * the row.
 */
export function isShownAsCaptured({ code, transform, fields }: Definition): boolean {
  const isFlat = fields.every(({ type, isList }) => type !== "Json" && !isList);
  return code.transform === undefined && transform === undefined && isFlat;
}

type Attempted<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "failed"; readonly reason: string };

function tryTo<T>(act: () => T): Attempted<T> {
  try {
    return { kind: "done", value: act() };
  } catch (error) {
    return { kind: "failed", reason: messageWithCause(error) };
  }
}

function refused(reason: string): Presented {
  return { kind: "refused", reason };
}

/**
 * Returns the relations that the transform can use: all for a code module, otherwise those at the
 * start of its paths.
 */
function relationsVisible(definition: Definition): readonly Relation[] {
  if (definition.code.transform !== undefined) return definition.relations;
  const paths = definition.transform === undefined ? [] : pathsOf(definition.transform);
  const named = new Set(paths.map(([name]) => name));
  return definition.relations.filter(({ name }) => named.has(name));
}

type Args = Readonly<Record<string, unknown>>;

/**
 * Finds related records like `findRelatedRecords`, but through the Prisma client. Runs one
 * statement for all rows when the relation has at most one record.
 *
 * @param args The relation's part of `include`: true, or Prisma's arguments.
 */
async function findRelated({
  relation: { kind, resource, localField, foreignField },
  args: given,
  rows,
  definitions,
  delegateOf,
}: {
  readonly relation: Relation;
  readonly args: unknown;
  readonly rows: readonly Row[];
  readonly definitions: Definitions;
  readonly delegateOf: DelegateOf;
}): Promise<readonly unknown[]> {
  const target = definitions.get(resource) as Definition;
  const find = async (wanted: Args): Promise<readonly Row[]> =>
    (await delegateOf(target.model)).findMany(wanted);
  const args = (typeof given === "object" && given !== null ? given : {}) as Args;
  const whereOf = (value: unknown): Args => ({
    AND: [...(args["where"] === undefined ? [] : [args["where"]]), { [foreignField]: value }],
  });

  const foreign = target.fields.find(({ name }) => name === foreignField) as Field;
  if (kind === "many" && !isUniqueAlone(foreign, target)) {
    // Runs one statement per row, because `take` and `orderBy` of the include apply to each record.
    const findOf = async (value: unknown): Promise<readonly Row[]> =>
      value === null ? [] : find({ ...args, where: whereOf(value) });
    return Promise.all(rows.map((row) => findOf(row[localField])));
  }
  const values = [...new Set(rows.map((row) => row[localField]).filter((value) => value !== null))];
  if (values.length === 0) return rows.map(() => null);
  const found = await find({ ...withField(args, foreignField), where: whereOf({ in: values }) });
  const byValue = new Map(found.map((row) => [comparable(row[foreignField]), row]));
  return rows.map((row) => {
    const record = byValue.get(comparable(row[localField]));
    if (record === undefined) return null;
    return copyOf(isSelected(args, foreignField) ? record : without(record, foreignField));
  });
}

/**
 * Copies a related record. Events of one read may share it. Code that changes it would take values
 * of one event into the next.
 */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (value instanceof Date) return new Date(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (typeof value !== "object" || value === null || Decimal.isDecimal(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copyOf(one)]));
}

/** Adds the field that matches the related records to their rows. */
function withField(args: Args, name: string): Args {
  const { select, omit } = args as { readonly select?: Args; readonly omit?: Args };
  return {
    ...args,
    ...(select === undefined ? {} : { select: { ...select, [name]: true } }),
    ...(omit === undefined ? {} : { omit: { ...omit, [name]: false } }),
  };
}

function isSelected(args: Args, name: string): boolean {
  const { select, omit } = args as { readonly select?: Args; readonly omit?: Args };
  return select === undefined ? omit?.[name] !== true : select[name] === true;
}

function without(row: Row, name: string): Row {
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== name));
}

/**
 * Returns a value that `===` can compare: two dates, decimals or bytes are never the same object.
 */
function comparable(value: unknown): unknown {
  return typeof value === "object" ? JSON.stringify(value) : value;
}
