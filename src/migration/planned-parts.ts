import { quoteName, quoteTable } from "../db/names.ts";
import type { Step } from "./core-migrations.ts";
import { lossOf, sentenceStart } from "./judge-changes.ts";
import { keyOfObject, placeOf, type LiveObject } from "./live-objects.ts";
import { isSame, isSigned, type MadeObject } from "./made.ts";

/** A CHECK constraint or an index of a mapping file that the schema engine does not know. */
export interface WantedPart {
  readonly kind: "constraint" | "index";
  readonly table: string;
  readonly name: string;
  /** The definition that the mapping file requires, in SQL. */
  readonly asked: string;
  /** Comment of the made part. It holds `asked`, because PostgreSQL rewrites conditions. */
  readonly comment: string;
  readonly make: Step;
  /** Returns whether this part is an object under a new name, as of a renamed column. */
  readonly replaces: (object: LiveObject) => boolean;
}

/** Planned changes of the parts that the schema engine does not know. */
export interface PartsPlan {
  /** Steps before the columns change. */
  readonly before: readonly Step[];
  /** Steps after the columns changed. */
  readonly after: readonly Step[];
  readonly losses: readonly string[];
  readonly impossible: readonly string[];
  /** The parts of the mapping files after the plan. All of them are made by the service. */
  readonly parts: readonly (Pick<WantedPart, "kind" | "table" | "name"> & { readonly isNew: boolean })[];
  /** Keys (`keyOf`) of the dropped parts. */
  readonly dropped: ReadonlySet<string>;
}

/**
 * Plans the parts. A part of the service that is no longer wanted is dropped. The comment also
 * marks its checks in a database without a record of them.
 *
 * @param objects Checks and indexes of every managed table that stay when the columns change.
 * @param unrecorded The tables of a version without a record.
 */
export function planParts({
  wanted,
  objects,
  made,
  unrecorded,
}: {
  readonly wanted: readonly WantedPart[];
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
  readonly unrecorded: ReadonlySet<string>;
}): PartsPlan {
  const live = new Map(objects.map((object) => [keyOfObject(object), object]));
  const keys = new Set(wanted.map(keyOfObject));
  const isOurs = (object: LiveObject): boolean => {
    const key = keyOfObject(object);
    const known = made.get(key);
    if (known?.isMade === true) return isSame(object, known);
    // A restore without the schema `svc` restores the check, but not its record.
    if (keys.has(key)) return isSigned(object);
    const isUnknown = known === undefined && unrecorded.has(object.table);
    return isUnknown && object.name.endsWith(checkEnding) && isSigned(object);
  };
  const comes = wanted.filter((part) => live.get(keyOfObject(part))?.comment !== part.comment);
  const taken = comes.flatMap((part) => {
    const there = live.get(keyOfObject(part));
    return there === undefined ? [] : [{ ...part, there }];
  });
  const ended = objects.filter((object) => !keys.has(keyOfObject(object)) && isOurs(object));
  const goes = [...ended, ...taken.map(({ there }) => there).filter(isOurs)];
  return {
    before: goes.map(dropStep),
    after: comes.map(({ make }) => make),
    losses: ended
      .filter((object) => !comes.some((part) => part.kind === object.kind && part.replaces(object)))
      .map((object) => lossOf(object, true)),
    impossible: taken
      .filter(({ there }) => !isOurs(there))
      .map(
        ({ there, asked }) =>
          `${sentenceStart(there)} is ${there.definition}, and svc did not make it: it is not touched. Give it another name; the mapping file asks for ${asked} under this one.`,
      ),
    parts: wanted.map((part) => ({ ...part, isNew: comes.includes(part) })),
    dropped: new Set(goes.map(keyOfObject)),
  };
}

/** End of the name of each check of the service. */
export const checkEnding = "_svc_values";

function dropStep({ kind, table, name }: LiveObject): Step {
  return kind === "index"
    ? { title: `${table}: drop the index ${name}`, sql: `DROP INDEX ${placeOf({ table, name })}` }
    : {
        title: `${table}: drop the check ${name}`,
        sql: `ALTER TABLE ${quoteTable(table)} DROP CONSTRAINT ${quoteName(name)}`,
      };
}
