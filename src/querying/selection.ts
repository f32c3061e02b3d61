import { quoteTable } from "../db/names.ts";
import type { Definition, Definitions, Field, Row } from "../mapping/definition.ts";
import { columnText } from "./condition-text.ts";
import type { Condition } from "./condition.ts";
import { linkOf, type Link } from "./links.ts";
import type { AliasOf, OrderItem } from "./order.ts";
import { valueOf } from "./values.ts";

/**
 * A record in raw form: texts of columns, and the records of its to-many relations, by position.
 */
export type Raw = (string | null | readonly Raw[])[];

/** The parts of a record to read. */
export interface Need {
  /** Names of fields; undefined for all of them. */
  readonly fields: ReadonlySet<string> | undefined;
  readonly related: ReadonlyMap<string, RelatedNeed>;
}

/** The records of a relation to many to read. */
export interface RelatedPage {
  readonly where?: Condition;
  readonly order?: readonly OrderItem[];
  /** Limit of the records for each record at the near end. */
  readonly take?: number;
  readonly skip?: number;
}

/** The records of a relation to read, and the parts of each. */
export interface RelatedNeed extends RelatedPage {
  readonly need: Need;
}

/** Positions of the parts of a record in a row of a statement. */
export interface Selection {
  readonly definition: Definition;
  readonly alias: string;
  readonly columns: ReadonlyMap<string, { readonly field: Field; readonly position: number }>;
  readonly ones: ReadonlyMap<string, JoinedSelection>;
  readonly manys: ReadonlyMap<string, ManySelection>;
}

/** A related record that is read by the same statement, through a join. */
export interface JoinedSelection extends Selection {
  readonly link: Link;
  /** Position of a column that is null only where there is no such record. */
  readonly presence: number;
}

/** A relation to many, which a statement of its own reads for all rows of a page. */
export interface ManySelection {
  readonly link: Link;
  /** Position of the near field's value in the parent's row. */
  readonly from: number;
  /** Position of the records in the parent's row. */
  readonly position: number;
  readonly statement: SelectionStatement;
  readonly rest: RelatedPage;
}

export interface SelectionStatement {
  readonly root: Selection;
  /** `t."id", t."name", j1."name"`. */
  readonly columns: string;
  /** Number of columns. */
  readonly width: number;
  /** `"public"."orders" AS t LEFT JOIN …`. */
  readonly from: string;
  /** Selections with relations to many, the root or joined ones. */
  readonly withManys: readonly Selection[];
  /** Returns the same FROM with the further joins that an order through relations needs. */
  withOrder(order: readonly OrderItem[]): { readonly from: string; readonly aliasOf: AliasOf };
}

interface Building {
  readonly definitions: Definitions;
  readonly columns: string[];
  readonly joins: string[];
  /** Aliases of joined tables by the path of relations that leads to them. */
  readonly aliases: Map<string, string>;
  readonly withManys: Selection[];
  /** Number of assigned positions, including those of to-many relations. */
  positions: number;
  /**
   * Functions that assign the positions of to-many relations, behind all columns of the statement.
   */
  readonly later: (() => void)[];
}

/** Plans the read of the needed parts of a record. */
export function selectionOf(
  definition: Definition,
  definitions: Definitions,
  need: Need,
): SelectionStatement {
  const building: Building = {
    definitions,
    columns: [],
    joins: [],
    aliases: new Map([["", "t"]]),
    withManys: [],
    positions: 0,
    later: [],
  };
  const root = select(definition, need, "t", "", building);
  for (const place of building.later) place();
  const from = [`${quoteTable(definition.table)} AS t`, ...building.joins].join(" ");
  return {
    root,
    columns: building.columns.join(", "),
    width: building.columns.length,
    from,
    withManys: building.withManys,
    withOrder: (order) => joinedFor(order, from, building.aliases),
  };
}

function select(
  definition: Definition,
  need: Need,
  alias: string,
  path: string,
  building: Building,
): Selection {
  const links = [...need.related].map(([name, related]) => {
    const relation = definition.relations.find((candidate) => candidate.name === name);
    if (relation === undefined) throw new Error(`${definition.name} has no relation ${name}`);
    return { link: linkOf(definition, relation, building.definitions), related };
  });
  const parents = new Set(links.filter(({ link }) => link.isMany).map(({ link }) => link.from.name));
  const columns = new Map<string, { readonly field: Field; readonly position: number }>();
  for (const field of definition.fields) {
    if (need.fields !== undefined && !need.fields.has(field.name) && !parents.has(field.name)) continue;
    columns.set(field.name, { field, position: addColumn(columnText(alias, field), building) });
  }
  const ones = new Map<string, JoinedSelection>();
  const manys = new Map<string, ManySelection>();
  const selection: Selection = { definition, alias, columns, ones, manys };
  for (const { link, related } of links) {
    if (link.isMany)
      building.later.push(() =>
        manys.set(link.name, {
          link,
          from: (columns.get(link.from.name) as { readonly position: number }).position,
          position: building.positions++,
          statement: selectionOf(link.target, building.definitions, related.need),
          rest: related,
        }),
      );
    else ones.set(link.name, join(link, related.need, alias, path, building));
  }
  if (links.some(({ link }) => link.isMany)) building.withManys.push(selection);
  return selection;
}

function join(
  link: Link,
  need: Need,
  parent: string,
  parentPath: string,
  building: Building,
): JoinedSelection {
  const path = parentPath === "" ? link.name : `${parentPath}.${link.name}`;
  const alias = `j${building.aliases.size}`;
  building.aliases.set(path, alias);
  building.joins.push(joinText(link, parent, alias));
  const presence = addColumn(columnText(alias, link.to), building);
  return { ...select(link.target, need, alias, path, building), link, presence };
}

function joinText({ target, from, to }: Link, parent: string, alias: string): string {
  return `LEFT JOIN ${quoteTable(target.table)} AS ${alias} ON ${columnText(alias, to)} = ${columnText(parent, from)}`;
}

function addColumn(text: string, building: Building): number {
  building.columns.push(text);
  return building.positions++;
}

function joinedFor(
  order: readonly OrderItem[],
  from: string,
  aliases: ReadonlyMap<string, string>,
): ReturnType<SelectionStatement["withOrder"]> {
  const all = new Map(aliases);
  const aliasOf: AliasOf = (links) => all.get(pathOf(links)) as string;
  const joins = [from];
  for (const { links } of order) {
    links.forEach((link, index) => {
      const path = pathOf(links.slice(0, index + 1));
      if (all.has(path)) return;
      const alias = `j${all.size}`;
      joins.push(joinText(link, aliasOf(links.slice(0, index)), alias));
      all.set(path, alias);
    });
  }
  return { from: joins.join(" "), aliasOf };
}

/** Returns the key of a joined table in `aliases`. */
function pathOf(links: readonly Link[]): string {
  return links.map(({ name }) => name).join(".");
}

/** Returns the record in the form of the Prisma client, for code modules. */
export function rowOf(selection: Selection, raw: Raw): Row {
  const row: Record<string, unknown> = {};
  for (const [name, { field, position }] of selection.columns)
    row[name] = valueOf(field, raw[position] as string | null);
  for (const [name, joined] of selection.ones)
    row[name] = raw[joined.presence] === null ? null : rowOf(joined, raw);
  for (const [name, { position, statement }] of selection.manys)
    row[name] = ((raw[position] ?? []) as readonly Raw[]).map((one) => rowOf(statement.root, one));
  return row;
}
