import type { Definition, Definitions, PrismaArgs, Row } from "../mapping/definition.ts";
import { recordSqlOf, type RecordSql } from "../querying/json-sql.ts";
import { jsonTemplateOf } from "../querying/json-template.ts";
import { createRecordWriter } from "../querying/json-writer.ts";
import { shownBy } from "../querying/shown-need.ts";
import { needOf } from "../querying/prisma-include.ts";
import { rowOf, selectionOf, type Raw, type SelectionStatement } from "../querying/selection.ts";
import { createTransform } from "../querying/transform.ts";
import { valueOf } from "../querying/values.ts";
import type { Link } from "../querying/links.ts";
import { shownPlaces } from "../mapping/shown.ts";
import { createProjection } from "../querying/projection.ts";
import { keysOf } from "../querying/shown-paths.ts";
import { projectTransform } from "./project-transform.ts";

/** A view of records: the columns and relations to read, and the conversion to JSON. */
export interface View {
  readonly statement: SelectionStatement;
  /** Returns the JSON of a record. Throws errors of the code module's `transform`. */
  json(raw: Raw): string;
  /** SQL that writes the JSON. Undefined when only this process can write it. */
  readonly sql?: RecordSql | undefined;
}

/** The part of a record that a request asks for. */
interface ShownPart {
  /** Paths of the record's JSON. Undefined: all of it. */
  readonly fields: readonly string[] | undefined;
  /** Relations that are shown in addition, replacing keys of the same name. */
  readonly related: readonly Link[];
}

export interface Views {
  /**
   * Returns the view of the resource's own transform.
   *
   * @param include `include` of the base query. The view is undefined where it has a part that only
   *   the Prisma client knows.
   * @param part The part of a record that a list shows; by default all.
   */
  of(include: PrismaArgs | undefined, part?: ShownPart): View | undefined;
  /** View that reads only the fields that decide on access: the key and the owner. */
  readonly access: View;
}

export function createViews(definition: Definition, definitions: Definitions): Views {
  const byInclude = new WeakMap<object, View>();
  const none = {};
  const always = accessNames(definition);
  const transform = createTransform(definition, definitions);

  function compile(
    include: PrismaArgs | undefined,
    { fields, related }: ShownPart = whole,
  ): View | undefined {
    const included = needOf(definition, definitions, include);
    if (included === undefined) return undefined;
    const places = shownPlaces(definition, definitions, include);
    const names = related.map(({ name }) => name);
    const read = [...always, ...related.map(({ from }) => from.name)];
    if (definition.code.transform !== undefined) {
      const statement = selectionOf(definition, definitions, included);
      const project = fields === undefined ? undefined : createProjection(fields, undefined);
      const show = (row: Row): unknown => {
        const record = transform(row);
        return without(project === undefined ? record : project(record), names);
      };
      return { statement, json: (raw) => JSON.stringify(show(rowOf(statement.root, raw))) };
    }
    const paths = fields?.map((path) => keysOf(places, path) ?? []);
    const shown =
      paths === undefined && names.length === 0
        ? { transform: definition.transform, isExact: true }
        : projectTransform(definition, paths, names);
    const need = shownBy(shown.transform, definition, included, read);
    const statement = selectionOf(definition, definitions, need);
    const template = jsonTemplateOf(shown.transform, statement.root);
    const write = createRecordWriter(template);
    if (shown.isExact || fields === undefined) return { statement, json: write, sql: recordSqlOf(template) };
    // Projects below the names of the transform: keys of a Json value, fields of a related record.
    const project = createProjection(fields, places);
    return { statement, json: (raw) => JSON.stringify(project(JSON.parse(write(raw)))) };
  }

  return {
    of(include, part) {
      if (part !== undefined && (part.fields !== undefined || part.related.length > 0))
        return compile(include, part);
      // A mapping file has one include; a code module may create one for each request.
      const known = byInclude.get(include ?? none);
      if (known !== undefined) return known;
      const view = compile(include);
      if (view !== undefined) byInclude.set(include ?? none, view);
      return view;
    },
    access: {
      statement: selectionOf(definition, definitions, { fields: new Set(always), related: new Map() }),
      json: () => "{}",
    },
  };
}

const whole: ShownPart = { fields: undefined, related: [] };

function without(shown: unknown, names: readonly string[]): unknown {
  if (names.length === 0 || typeof shown !== "object" || shown === null) return shown;
  return Object.fromEntries(Object.entries(shown).filter(([name]) => !names.includes(name)));
}

function accessNames({ keys, ownerColumn }: Definition): readonly string[] {
  return [...keys.map(({ name }) => name), ...(ownerColumn === undefined ? [] : [ownerColumn])];
}

/** Returns the key and the owner in Prisma's types. */
export function accessOf({ columns, definition }: SelectionStatement["root"], raw: Raw): Row {
  return Object.fromEntries(
    accessNames(definition).map((name) => {
      const column = columns.get(name);
      if (column === undefined) throw new Error(`The view of ${definition.name} lacks ${name}`);
      return [name, valueOf(column.field, raw[column.position] as string | null)];
    }),
  );
}
