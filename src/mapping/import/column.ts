import { codePoints } from "../../validation/values.ts";
import { isTextItself } from "../native.ts";
import type { CatalogColumn, CatalogConstraint, CatalogType } from "./catalog.ts";
import { areCompared, readCheck, type Checked } from "./checks.ts";
import { resolveType, typedField, type ResolvedType, type TypedField } from "./column-type.ts";
import { importedDefault, type ImportedDefault } from "./defaults.ts";

/** A column that a field can hold. */
export interface ImportedColumn {
  readonly column: CatalogColumn;
  readonly typed: TypedField;
  /** Name of the type beneath the domains. */
  readonly baseType: string;
  readonly isNotNull: boolean;
  readonly default: ImportedDefault | undefined;
  /**
   * Whether writes may never contain the column: it is generated, an identity that is always
   * generated, or one that the role may not write.
   */
  readonly isGenerated: boolean;
  /** Whether the database generates a number for each new row. */
  readonly isCounted: boolean;
  /** Conditions of its CHECK constraints, including those of its domains. */
  readonly checks: readonly Checked[];
}

/** A column that no field can hold, with the reason. */
interface LeftOutColumn {
  readonly column: CatalogColumn;
  readonly reason: string;
  /** Whether a row without a value for it is refused. */
  readonly isNeeded: boolean;
}

export interface ImportedColumns {
  readonly columns: readonly ImportedColumn[];
  readonly leftOut: readonly LeftOutColumn[];
  /** Conditions that only the database checks. */
  readonly unread: readonly string[];
}

/**
 * Reads the columns of a table.
 *
 * @param checks Every CHECK constraint of the table and of domains.
 * @param keyColumn Number of the column that is the key by itself; undefined for any other key.
 * @param refusalOf Returns why a check of the files refused a column by its name.
 */
export function importColumns({
  columns,
  types,
  checks,
  keyColumn,
  refusalOf = () => undefined,
}: {
  readonly columns: readonly CatalogColumn[];
  readonly types: ReadonlyMap<number, CatalogType>;
  readonly checks: readonly CatalogConstraint[];
  readonly keyColumn: number | undefined;
  readonly refusalOf?: (name: string) => string | undefined;
}): ImportedColumns {
  const bases = new Map(columns.map((column) => [column.name, resolveType(column, types)?.base.name]));
  const ofTable = readChecks(
    checks.filter(({ relation }) => relation !== 0),
    (name, casts) => areCompared(bases.get(name), casts),
  );
  const imported: ImportedColumn[] = [];
  const leftOut: LeftOutColumn[] = [];
  const unread = [...ofTable.unread];
  for (const column of columns) {
    const resolved = resolveType(column, types);
    const refusal = refusalOf(column.name);
    const plain = refusal === undefined ? typeOf(column, resolved) : { reason: refusal };
    const isFilled = column.expression !== null || column.identity !== "" || hasDomainDefault(resolved);
    const isNotNull = column.isNotNull || refusesNull(resolved);
    if (resolved === undefined || "reason" in plain) {
      const reason = "reason" in plain ? plain.reason : "";
      leftOut.push({ column, reason, isNeeded: isNotNull && !isFilled });
      continue;
    }
    const ofDomains = readChecks(
      checks.filter(({ domain }) => !resolved.isList && resolved.domains.some(({ oid }) => oid === domain)),
      (_name, casts) => areCompared(resolved.base.name, casts),
    );
    const own = [
      ...ofTable.checks.filter((check) => check.column === column.name),
      ...ofDomains.checks.filter((check) => check.column === "VALUE"),
    ];
    unread.push(
      ...ofDomains.unread.map((condition) => condition.replaceAll(/\bVALUE\b/g, () => column.name)),
    );
    const isKey = column.number === keyColumn;
    const typed = withEnum(plain, own);
    imported.push({
      column,
      typed,
      baseType: resolved.base.name,
      isNotNull,
      default: defaultOf(column, resolved, typed, isKey),
      isGenerated: column.isGenerated || column.identity === "a" || !(column.mayInsert || column.mayUpdate),
      isCounted: column.identity !== "" || column.expression?.startsWith("nextval(") === true,
      checks: own,
    });
  }
  return { columns: imported, leftOut, unread };
}

function typeOf(
  column: CatalogColumn,
  resolved: ResolvedType | undefined,
): TypedField | { readonly reason: string } {
  if (!column.maySelect) return { reason: "permission denied; grant SELECT on it to the role of svc" };
  if (column.isVirtual)
    return { reason: "it is generated and not stored, which triggers cannot see; make it STORED" };
  if (/["\p{Cc}]/u.test(column.name))
    return { reason: "a mapping file cannot name it: it has a double quote or a control character" };
  return resolved === undefined ? { reason: "no field holds lists of lists" } : typedField(resolved);
}

/** Returns whether a domain of the column refuses NULL. The domains of a list's items do not. */
function refusesNull(resolved: ResolvedType | undefined): boolean {
  return resolved?.isList === false && resolved.domains.some(({ isNotNullDomain }) => isNotNullDomain);
}

function hasDomainDefault(resolved: ResolvedType | undefined): boolean {
  return resolved?.domains.some(({ domainDefault }) => domainDefault !== null) === true;
}

function defaultOf(
  column: CatalogColumn,
  resolved: ResolvedType,
  typed: TypedField,
  isKey: boolean,
): ImportedDefault | undefined {
  if (column.isGenerated) return undefined;
  if (column.identity !== "") return { kind: "database" };
  if (column.expression !== null)
    return importedDefault(column.expression, typed, { column: column.name, isKey });
  return hasDomainDefault(resolved) ? { kind: "database" } : undefined;
}

function readChecks(
  checks: readonly CatalogConstraint[],
  isPlain: Parameters<typeof readCheck>[1],
): { readonly checks: readonly Checked[]; readonly unread: readonly string[] } {
  const read = checks.map(({ condition, isValidated }) => ({
    condition: condition ?? "",
    // Existing rows may violate a constraint that was never validated.
    parts: isValidated ? readCheck(condition ?? "", isPlain) : undefined,
  }));
  return {
    checks: read.flatMap(({ parts }) => parts ?? []),
    unread: read.flatMap(({ condition, parts }) =>
      parts === undefined && condition !== "" ? [condition] : [],
    ),
  };
}

const longestValue = 63;

/** Returns an Enum for a text that can hold each value of the list of those it may have. */
function withEnum(typed: TypedField, checks: readonly Checked[]): TypedField {
  const check = checks.find((one) => one.kind === "values");
  if (check?.kind !== "values" || typed.type !== "String" || !isTextItself(typed)) return typed;
  const { values } = check;
  const longest = Math.min(longestValue, typed.length ?? longestValue);
  const isFitting =
    new Set(values).size === values.length &&
    values.every((value) => value !== "" && codePoints(value) <= longest);
  return isFitting && typed.list === undefined ? { type: "Enum", values } : typed;
}
