import { databaseFaultOf } from "../db/database-fault.ts";
import type { TextSql } from "../db/text-sql.ts";
import { validationError } from "../kit/errors.ts";
import { createParameters, fromText } from "../querying/condition-text.ts";
import { allOf, type Condition } from "../querying/condition.ts";
import { countRows } from "../querying/count.ts";
import { reversed, type OrderItem } from "../querying/order.ts";
import { orderOf } from "../querying/prisma-include.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { readCountedPage, readPositions, readRecords, totalOrder, type Reading } from "../querying/read.ts";
import type { Raw } from "../querying/selection.ts";
import type { ListHolder } from "./list-database.ts";
import {
  readCursorPage,
  readPage,
  type CursorPage,
  type CursorPart,
  type ListPart,
  type NumberedPage,
} from "../querying/list-page.ts";
import type { StoreContext, StoreOptions } from "./record-database.ts";
import type { ListQuery } from "./record-store.ts";
import { refuseList } from "./refusals.ts";
import type { RelatedList } from "./related-lists.ts";
import type { View } from "./record-view.ts";
import { writePage } from "./write-page.ts";

export async function listByPage(
  context: StoreContext,
  query: ListQuery,
  part: ListPart,
): Promise<NumberedPage<string>> {
  const compiled = compiledList(context, query);
  const { definition, fallback, database } = context;
  const holder = holderOf(context, query);
  if (compiled === undefined) return database.lists.inTurn(holder, () => fallback().list(query, part));
  const { view, condition, sql } = compiled;
  const readingOf = (take: number): Reading => ({ condition, order: compiled.order, skip: part.skip, take });
  const read = async (take: number): Promise<readonly string[]> =>
    jsonOf(compiled, await readRecords(sql, view.statement, readingOf(take)));
  return readPage(part, {
    read,
    async readCounted(take, countAt) {
      // When lists wait together, one of them counts for all that need the same count.
      if (database.lists.isBusy(holder)) return { records: await read(take) };
      const found = await readCountedPage(sql, view.statement, { reading: readingOf(take), countAt });
      return { records: await jsonOf(compiled, found.rows), total: found.total };
    },
    async count(mode) {
      const parameters = createParameters();
      return countRows(sql, mode, { from: fromText(definition, condition, parameters), parameters });
    },
  }).catch((error: unknown) => refuseList(query.asked, error));
}

/** Reads a page from a position on. */
export async function listByCursor(
  context: StoreContext,
  query: ListQuery,
  part: CursorPart,
): Promise<CursorPage> {
  const compiled = compiledList(context, query);
  if (compiled === undefined) {
    const { database, fallback } = context;
    return database.lists.inTurn(holderOf(context, query), () => fallback().listByCursor(query, part));
  }
  const { view, condition, sql } = compiled;
  const order = part.from?.isBackwards === true ? reversed(compiled.order) : compiled.order;
  return readCursorPage(part, async (take) => {
    const reading = { condition, order, take, after: part.from };
    const found = await readPositions(sql, view.statement, reading);
    const texts = await jsonOf(
      compiled,
      found.map(({ raw }) => raw),
    );
    return found.map(({ position }, index) => ({ position, json: texts[index] ?? "" }));
  }).catch((error: unknown) => refuseList(query.asked, error));
}

interface CompiledList {
  readonly userId: number;
  readonly view: View;
  readonly condition: Condition;
  readonly order: readonly OrderItem[];
  readonly related: readonly RelatedList[];
  readonly sql: TextSql;
}

function holderOf({ definition }: StoreOptions, { userId }: ListQuery): ListHolder {
  return { userId, resource: definition.name };
}

/** Returns undefined for a query with a part that only the Prisma client supports. */
function compiledList(options: StoreOptions, query: ListQuery): CompiledList | undefined {
  const { definition, definitions, views, database } = options;
  const { where, orderBy, include, access, filter, sort, fields, related } = query;
  const view = views.of(include, { fields, related: related.map(({ link }) => link) });
  const base = conditionOf(definition, definitions, where);
  const order = sort ?? orderOf(definition, definitions, orderBy);
  if (view === undefined || base === undefined || order === undefined) return undefined;
  return {
    userId: query.userId,
    view,
    condition: allOf([base, access, filter]),
    order: totalOrder(order, definition),
    related,
    sql: database.lists.sql(holderOf(options, query)),
  };
}

/** Writes the JSON of records, with the requested relations at its end. */
async function jsonOf(
  { userId, view, related, sql }: CompiledList,
  raws: readonly Raw[],
): Promise<readonly string[]> {
  let texts = await writePage(userId, raws, (raw) => view.json(raw));
  for (const one of related) {
    const { name, link } = one;
    const position = view.statement.root.columns.get(link.from.name)?.position ?? -1;
    const values = raws.map((raw) => (raw[position] ?? null) as string | null);
    const lists = await one.read(sql, values).catch((error: unknown) => refuseRelated(one, values, error));
    texts = texts.map((text, index) => withMember(text, name, lists[index] ?? "null"));
  }
  return texts;
}

/** Refuses the relation when the linked records of one record alone are too large. */
function refuseRelated({ name, link }: RelatedList, values: readonly unknown[], error: unknown): never {
  if (values.length > 1 || databaseFaultOf(error).kind !== "too_large") throw error;
  const message = `The ${name} of one record are too large for an answer; ask for them by a list of ${link.target.name}.`;
  throw validationError({ include: [message] }, error);
}

function withMember(text: string, name: string, value: string): string {
  // Code may show a record in another form than an object.
  if (!text.startsWith("{")) return text;
  const separator = text === "{}" ? "" : ",";
  return `${text.slice(0, -1)}${separator}${JSON.stringify(name)}:${value}}`;
}
