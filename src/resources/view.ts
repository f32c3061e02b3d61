import type { Definition, Definitions, Row } from "../mapping/definition.ts";
import { createRecordWriter, shownBy } from "../querying/json-writer.ts";
import { needOf } from "../querying/prisma-include.ts";
import { rowOf, selectionOf, type Raw, type SelectionStatement } from "../querying/selection.ts";
import { createTransform } from "../querying/transform.ts";
import { valueOf } from "../querying/values.ts";
import { projectTransform } from "./projection.ts";

type Include = Readonly<Record<string, unknown>> | undefined;

/** How records are read and shown: which columns and relations, and the JSON that is made of them. */
export interface View {
  readonly statement: SelectionStatement;
  /** Throws what the code module's `transform` throws. */
  json(raw: Raw): string;
}

export interface Views {
  /**
   * Returns the view of the resource's own transform.
   *
   * @param include Of the base query. The view is undefined where it has a part that only the Prisma client knows.
   * @param fields Paths of the record's JSON to show; by default all.
   */
  of(include: Include, fields?: readonly string[]): View | undefined;
  /** Reads only what decides on access: the key and the owner. */
  readonly access: View;
}

export function createViews(definition: Definition, definitions: Definitions): Views {
  const byInclude = new WeakMap<object, View>();
  const none = {};
  const always = [
    definition.key.name,
    ...(definition.ownerColumn === undefined ? [] : [definition.ownerColumn]),
  ];
  const transform = createTransform(definition, definitions);

  function compile(include: Include, fields: readonly string[] | undefined): View | undefined {
    const included = needOf(definition, definitions, include);
    if (included === undefined) return undefined;
    if (definition.code.transform !== undefined) {
      const statement = selectionOf(definition, definitions, included);
      return { statement, json: (raw) => JSON.stringify(transform(rowOf(statement.root, raw))) };
    }
    const shown = fields === undefined ? definition.transform : projectTransform(definition, fields);
    const statement = selectionOf(definition, definitions, shownBy(shown, definition, included, always));
    return { statement, json: createRecordWriter(shown, statement.root) };
  }

  return {
    of(include, fields) {
      if (fields !== undefined) return compile(include, fields);
      // A mapping file has one include; a code module may make one for each request.
      const known = byInclude.get(include ?? none);
      if (known !== undefined) return known;
      const view = compile(include, undefined);
      if (view !== undefined) byInclude.set(include ?? none, view);
      return view;
    },
    access: {
      statement: selectionOf(definition, definitions, { fields: new Set(always), related: new Map() }),
      json: () => "{}",
    },
  };
}

/** Returns the key and the owner in Prisma's types. */
export function accessOf({ columns, definition }: SelectionStatement["root"], raw: Raw): Row {
  const names = [definition.key.name, definition.ownerColumn ?? definition.key.name];
  return Object.fromEntries(
    names.map((name) => {
      const column = columns.get(name);
      if (column === undefined) throw new Error(`The view of ${definition.name} lacks ${name}`);
      return [name, valueOf(column.field, raw[column.position] as string | null)];
    }),
  );
}
