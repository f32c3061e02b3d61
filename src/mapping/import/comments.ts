import type { Comments } from "../../config/edit-yaml.ts";
import type { Trigger } from "../definition.ts";
import type { ChosenTable } from "./imported-table.ts";
import { capitalized } from "./names.ts";
import { isSecret } from "./secret-names.ts";
import type { TableReferences } from "./references.ts";
import type { FieldOfColumn } from "./rules.ts";

/** The comments of a file, and the remarks that the report repeats. */
export interface TableComments {
  readonly comments: Comments;
  readonly remarks: readonly string[];
}

/**
 * Returns comments: those of the database, and properties of the table that a file cannot express.
 */
export function tableComments({
  table: { relation, columns, key, table },
  fields,
  references,
  needed,
  ownTriggers,
  ownerRemarks,
}: {
  readonly table: ChosenTable;
  readonly fields: readonly FieldOfColumn[];
  readonly references: TableReferences;
  /** Columns that a new row requires, and that no field holds. */
  readonly needed: readonly string[];
  readonly ownTriggers: readonly Trigger[];
  readonly ownerRemarks: readonly string[];
}): TableComments {
  const isView = relation.kind === "view" || relation.kind === "materialized view";
  const remarks = [
    ...remarksOf({ table: { relation, key }, needed, ownTriggers, isView }),
    ...ownerRemarks,
    ...references.remarks,
  ];
  const head = [
    `${capitalized(relation.kind)} ${table}, from \`svc-admin import\`.`,
    ...linesOf(relation.comment),
    ...remarks.map((remark) => `Note: ${remark}`),
    ...columns.leftOut.map(({ column, reason }) => `Left out: ${column.name} (${column.type}): ${reason}.`),
    ...(relation.triggers.length > 0 ? [`It has triggers of its own: ${relation.triggers.join(", ")}.`] : []),
    ...columns.unread.map(
      (condition) => `Checked by the database only: ${condition.replaceAll(/\s+/g, " ")}`,
    ),
  ];
  const ofFields = fields.map(({ name, field, imported }): [string, readonly string[]] => [
    `fields.${name}`,
    [
      ...linesOf(imported.column.comment),
      ...(references.plain.get(imported.column.number) === undefined
        ? []
        : [`No reference: ${references.plain.get(imported.column.number)}.`]),
      ...linesOf(imported.typed.remark === undefined ? null : `Note: ${imported.typed.remark}.`),
      ...hintsOf({ name, field, imported }, isView),
    ],
  ]);
  return {
    comments: {
      "": head.flatMap(linesOf),
      access: ["Admins only, until you say who else may."],
      ...Object.fromEntries(ofFields),
    },
    remarks: [
      ...remarks,
      ...fields.flatMap(({ name, imported: { typed } }) =>
        typed.remark === undefined ? [] : [`${name}: ${typed.remark}.`],
      ),
      ...[...references.plain].map(
        ([number, reason]) =>
          `${fields.find(({ imported }) => imported.column.number === number)?.name ?? number}: ${reason}.`,
      ),
    ],
  };
}

/** Returns sentences about properties of the table that may surprise a person. */
function remarksOf({
  table: { relation, key },
  needed,
  ownTriggers,
  isView,
}: {
  readonly table: Pick<ChosenTable, "relation" | "key">;
  readonly needed: readonly string[];
  readonly ownTriggers: readonly Trigger[];
  readonly isView: boolean;
}): readonly string[] {
  return [
    ...(key.remark === undefined ? [] : [key.remark]),
    ...(relation.kind === "materialized view"
      ? [
          relation.isPopulated
            ? "It shows the rows of its last REFRESH."
            : "It answers 503 until its first REFRESH, and then shows the rows of the last one.",
        ]
      : []),
    ...(relation.kind === "foreign table"
      ? ["A foreign table: its changes cannot be captured, so that it is read-only here and sends no events."]
      : []),
    ...(!isView && relation.kind !== "foreign table" && ownTriggers.length === 0
      ? ["Its changes make no events: the role of svc lacks the privilege TRIGGER on it."]
      : []),
    ...(relation.hasRowSecurity
      ? ["It has row level security: svc sees and changes only what the policies allow its own role."]
      : []),
    ...(relation.children.length > 0
      ? [`It also shows the rows of the tables that inherit from it: ${relation.children.join(", ")}.`]
      : []),
    ...(needed.length > 0
      ? [
          relation.fillsRows
            ? `${needed.join(", ")} must have a value, and no field holds it: a trigger of the table has to fill it.`
            : `No record can be created: ${needed.join(", ")} must have a value, and no field holds it.`,
        ]
      : []),
    ...(relation.replaced.length > 0 && !isView
      ? [`A rule of its own replaces ${relation.replaced.join(" and ")}, which svc therefore leaves out.`]
      : []),
    ...deniedWrites(relation, isView),
  ];
}

function deniedWrites(
  { mayInsert, deniedSequences, mayUpdate, mayDelete, kind }: ChosenTable["relation"],
  isView: boolean,
): readonly string[] {
  if (isView || kind === "foreign table") return [];
  const denied = [
    ...(mayInsert ? [] : ["INSERT"]),
    ...(mayUpdate ? [] : ["UPDATE"]),
    ...(mayDelete ? [] : ["DELETE"]),
  ];
  return [
    ...(denied.length === 0 ? [] : [`The role of svc lacks the privilege ${denied.join(", ")} on it.`]),
    ...(deniedSequences.length === 0
      ? []
      : [
          `The role of svc lacks the privilege USAGE on ${deniedSequences.join(", ")}: no record can be created.`,
        ]),
  ];
}

function hintsOf({ name, field, imported }: FieldOfColumn, isView: boolean): readonly string[] {
  const isMissing = field.type === "DateTime" && imported.isNotNull && imported.default === undefined;
  const secrets = field.type === "String" && isSecret(imported.column.name) ? [secretHint] : [];
  if (isView) return secrets;
  return [
    ...(isMissing && /^(?:created|inserted)_?(?:at|on)$/i.test(name)
      ? ["With `default: now`, svc fills it in, and clients need not send it."]
      : []),
    ...(field.type === "DateTime" &&
    imported.isNotNull &&
    /^(?:updated|modified|changed)_?(?:at|on)$/i.test(name)
      ? ["With `updatedAt: true`, svc sets it at each change, and clients need not send it."]
      : []),
    ...secrets,
  ];
}

const secretHint = "It may be a secret: a `transform` without it keeps it out of answers and webhooks.";

const longestComment = 4_000;

/** Returns the lines of a text, without characters that YAML does not allow. */
function linesOf(text: string | null): readonly string[] {
  if (text === null || text.trim() === "") return [];
  const cut = text.length > longestComment ? `${text.slice(0, longestComment)}…` : text;
  return cut
    .trim()
    .split(/\r\n|[\n\r\u0085\u2028\u2029]/)
    .map((line) => line.replaceAll(/[\p{Cc}\uFEFF\uFFFE\uFFFF]/gu, " ").trimEnd());
}
