import { maxNameBytes, partsOfTable, shortTable } from "../../db/names.ts";
import type { Draft } from "./draft.ts";
import { isReserved } from "./fields.ts";

/** Words that Prisma reserves: its types, and names that generated JavaScript cannot use. */
const reservedModels = new Set(
  (
    "Prisma PrismaClient String Boolean Int BigInt Float Decimal DateTime Json Bytes async await break case catch class const continue " +
    "debugger default delete do else enum export extends false finally for function if implements import in instanceof " +
    "interface let new null package private protected public return super switch this throw true try type typeof using var void while with yield"
  ).split(" "),
);

/** Pattern of the schemas of PostgreSQL and of the service, whose tables cannot be resources. */
const reservedSchema = /^(?:svc|pg_[^.]*|information_schema)\./;

/** Checks the names of resources, models and tables, on their own and across files. */
export function checkNames(drafts: readonly Draft[]): void {
  for (const draft of drafts) {
    const { model, table } = draft.content;
    if (model !== undefined && isReservedModel(model)) {
      draft.report(["model"], `"${model}" is a reserved word; expected another name, such as ${model}Record`);
    }
    const parts = table === undefined ? [] : Object.values(partsOfTable(table));
    if (parts.some((part) => Buffer.byteLength(part) > maxNameBytes)) {
      draft.report(["table"], `expected at most ${maxNameBytes} bytes`);
    }
    if (table !== undefined && reservedSchema.test(table))
      draft.report(["table"], "expected a table outside the schemas of PostgreSQL and of svc");
  }
  // Two files with the same name also have the same default table, which needs no second fault.
  const distinct = checkUnique(drafts, "name", ({ content }) => content.name);
  // The client uses the same name for Order and order.
  checkUnique(drafts, "model", ({ content }) => content.model && delegateNameOf(content.model));
  checkUnique(distinct, "table", ({ content, faultyKeys }) => {
    const table = content.table ?? (faultyKeys.has("table") ? undefined : content.name);
    return table && shortTable(table);
  });
}

/** Returns whether a name is reserved, so that no model can have it. */
export function isReservedModel(model: string): boolean {
  return reservedModels.has(model) || isReserved(delegateNameOf(model));
}

/** Returns the client's name of a model, which is the same for Order and order. */
export function delegateNameOf(model: string): string {
  return `${model.charAt(0).toLowerCase()}${model.slice(1)}`;
}

/** Reports repeated names. Returns the drafts without them. */
function checkUnique(
  drafts: readonly Draft[],
  key: "name" | "model" | "table",
  nameOf: (draft: Draft) => string | undefined,
): readonly Draft[] {
  const taken = new Map<string, string>();
  return drafts.filter((draft) => {
    const name = nameOf(draft);
    const other = name === undefined ? undefined : taken.get(name);
    if (other !== undefined) {
      // Without `table` the table has the name of the resource.
      const path = draft.content[key] === undefined ? ["name"] : [key];
      draft.report(path, `expected a ${key} of its own; ${other} has the same`);
      return false;
    }
    if (name !== undefined) taken.set(name, draft.source.file);
    return true;
  });
}
