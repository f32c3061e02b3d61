import type { Comments } from "../../config/edit-yaml.ts";
import type { Trigger } from "../definition.ts";
import type { ChosenTable } from "./imported-table.ts";
import { capitalized } from "./names.ts";
import { isSecret } from "./secret-names.ts";
import type { TableReferences } from "./references.ts";
import type { FieldOfColumn } from "./rules.ts";

/** The comments of a file, and the remarks that the report repeats. */
interface TableComments {
  readonly comments: Comments;
  readonly remarks: readonly string[];
}

/** The table, and the content of its file. */
interface CommentedParts {
  readonly table: ChosenTable;
  readonly fields: readonly FieldOfColumn[];
  readonly references: TableReferences;
  /** Columns that a new row requires, and that no field holds. */
  readonly needed: readonly string[];
  readonly ownTriggers: readonly Trigger[];
  readonly ownerRemarks: readonly string[];
}

/**
 * Returns comments: those of the database, and properties of the table that a file cannot express.
 */
export function tableComments(parts: CommentedParts): TableComments {
  const { fields, references } = parts;
  const { relation, columns, table } = parts.table;
  const isView = relation.kind === "view" || relation.kind === "materialized view";
  const remarks = [...remarksOf(parts, isView), ...parts.ownerRemarks, ...references.remarks];
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
  const ofFields = fields.map((one): [string, readonly string[]] => {
    const { column, typed } = one.imported;
    const reason = references.plain.get(column.number);
    return [
      `fields.${one.name}`,
      [
        ...linesOf(column.comment),
        ...(reason === undefined ? [] : [`No reference: ${reason}.`]),
        ...linesOf(typed.remark === undefined ? null : `Note: ${typed.remark}.`),
        ...hintsOf(one, isView),
      ],
    ];
  });
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
function remarksOf(
  { table: { relation, key }, fields, needed, ownTriggers }: CommentedParts,
  isView: boolean,
): readonly string[] {
  const { kind, children, replaced } = relation;
  const isTable = !isView && kind !== "foreign table";
  return [
    key.remark,
    kind === "materialized view" &&
      (relation.isPopulated
        ? "It shows the rows of its last REFRESH."
        : "It answers 503 until its first REFRESH, and then shows the rows of the last one."),
    kind === "foreign table" &&
      "A foreign table: its changes cannot be captured, so that it is read-only here and sends no events.",
    isTable &&
      ownTriggers.length === 0 &&
      "Its changes make no events: the role of svc lacks the privilege TRIGGER on it.",
    relation.hasRowSecurity &&
      "It has row level security: svc sees and changes only what the policies allow its own role.",
    children.length > 0 &&
      `It also shows the rows of the tables that inherit from it: ${children.join(", ")}.`,
    needed.length > 0 &&
      (relation.fillsRows
        ? `${needed.join(", ")} must have a value, and no request can set it: a trigger of the table has to fill it.`
        : `No record can be created: ${needed.join(", ")} must have a value, and no request can set it.`),
    replaced.length > 0 &&
      !isView &&
      `A rule of its own replaces ${replaced.join(" and ")}, which svc therefore leaves out.`,
    ...(isTable ? deniedWrites(relation) : []),
    ...(isTable && relation.mayInsert ? deniedColumns(fields, "INSERT") : []),
    ...(isTable && relation.mayUpdate ? deniedColumns(fields, "UPDATE") : []),
  ].filter((line) => typeof line === "string");
}

function deniedWrites({
  mayInsert,
  deniedSequences,
  mayUpdate,
  mayDelete,
}: ChosenTable["relation"]): readonly string[] {
  const denied = [!mayInsert && "INSERT", !mayUpdate && "UPDATE", !mayDelete && "DELETE"].filter(
    (what) => what !== false,
  );
  return [
    denied.length > 0 && `The role of svc lacks the privilege ${denied.join(", ")} on it.`,
    deniedSequences.length > 0 &&
      `The role of svc lacks the privilege USAGE on ${deniedSequences.join(", ")}: no record can be created.`,
  ].filter((line) => line !== false);
}

function deniedColumns(fields: readonly FieldOfColumn[], right: "INSERT" | "UPDATE"): readonly string[] {
  const denied = fields.filter(({ field, imported: { column, isCounted } }) => {
    const isMade = column.isGenerated || isCounted || (right === "UPDATE" && field.id === true);
    return !isMade && !(right === "INSERT" ? column.mayInsert : column.mayUpdate);
  });
  const names = denied.map(({ name }) => name).join(", ");
  const what = right === "INSERT" ? "create" : "update";
  return names === ""
    ? []
    : [`No ${what} sets ${names}: the role of svc lacks the privilege ${right} on them.`];
}

function hintsOf({ name, field, imported }: FieldOfColumn, isView: boolean): readonly string[] {
  const isTime = field.type === "DateTime" && imported.isNotNull && !isView;
  return [
    isTime &&
      imported.default === undefined &&
      /^(?:created|inserted)_?(?:at|on)$/i.test(name) &&
      "With `default: now`, svc fills it in, and clients need not send it.",
    isTime &&
      /^(?:updated|modified|changed)_?(?:at|on)$/i.test(name) &&
      "With `updatedAt: true`, svc sets it at each change, and clients need not send it.",
    field.type === "String" &&
      isSecret(imported.column.name) &&
      "It may be a secret: a `transform` without it keeps it out of answers and webhooks.",
  ].filter((line) => line !== false);
}

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
