import type { ClientBase, QueryResultRow } from "pg";
import { createRequire } from "node:module";
import type { Sql } from "../../src/db/sql.ts";

/** Figures of a statement's execution. */
export interface Plan {
  readonly text: string;
  readonly ms: number;
  /** Pages of 8 KB, in memory or not. */
  readonly pages: number;
  /** Rows of the tables of `svc`, including those that a filter dropped. */
  readonly rowsRead: number;
  /** Each table that was read completely, with its rows. */
  readonly wholeTables: readonly { readonly table: string; readonly rows: number }[];
  readonly mostSorted: number;
  /** PostgreSQL's own plan, for debugging. */
  readonly tree: unknown;
}

/**
 * A generic plan does not depend on parameters. PostgreSQL may use either for a prepared statement.
 */
export type PlanMode = "custom" | "generic";

interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Node[];
}

const { prepareValue } = createRequire(import.meta.url)("pg/lib/utils") as {
  /** Converts a value to the form on the wire. */
  readonly prepareValue: (value: unknown) => string | Buffer | null;
};

/**
 * Creates a `Sql` that runs each statement, explains it, and rolls its writes back, so that every
 * statement finds the same rows.
 *
 * @param note Called with each statement.
 */
export function createExplainingSql({
  client,
  settings,
  mode,
  note,
}: {
  readonly client: ClientBase;
  /** `SET LOCAL` statements. */
  readonly settings: string;
  readonly mode: PlanMode;
  readonly note: (plan: Plan) => void;
}): Sql {
  return async <R extends QueryResultRow>(text: string, values: readonly unknown[] = []) => {
    await client.query(`BEGIN; ${settings}`);
    const { rows } = await client.query<R>(text, [...values]);
    await client.query("ROLLBACK");
    if (text.startsWith("EXPLAIN")) return rows;
    await client.query(`BEGIN; SET LOCAL plan_cache_mode = force_${mode}_plan; ${settings}`);
    await client.query(`PREPARE explained AS ${text}`);
    const given = values.length === 0 ? "" : `(${values.map(literalOf).join(", ")})`;
    const answer = await client.query<{ "QUERY PLAN": [{ Plan: Node; "Execution Time": number }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE explained${given}`,
    );
    await client.query("DEALLOCATE explained");
    await client.query("ROLLBACK");
    const [explained] = answer.rows[0]?.["QUERY PLAN"] ?? [];
    if (explained !== undefined) note(planOf(text, explained.Plan, explained["Execution Time"]));
    return rows;
  };
}

function planOf(text: string, tree: Node, ms: number): Plan {
  const nodes = [...nodesOf(tree)];
  const sorts = nodes.filter((node) => node["Node Type"].includes("Sort"));
  return {
    text,
    ms,
    // The root does not count nodes that only write.
    pages: Math.max(...nodes.map((node) => node["Shared Hit Blocks"] + node["Shared Read Blocks"])),
    rowsRead: nodes.reduce((sum, node) => sum + rowsReadBy(node), 0),
    wholeTables: nodes
      .filter((node) => node["Node Type"] === "Seq Scan")
      .map((node) => ({ table: node["Relation Name"] ?? "", rows: rowsReadBy(node) })),
    mostSorted: Math.max(0, ...sorts.flatMap(({ Plans = [] }) => Plans.map((input) => input["Actual Rows"]))),
    tree,
  };
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of node.Plans ?? []) yield* nodesOf(child);
}

/** Actual rows are per loop. */
function rowsReadBy(node: Node): number {
  if (node["Relation Name"] === undefined || node["Node Type"] === "ModifyTable") return 0;
  const dropped = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  return (node["Actual Rows"] + dropped) * node["Actual Loops"];
}

function literalOf(value: unknown): string {
  const prepared = prepareValue(value);
  if (prepared === null) return "NULL";
  const text = typeof prepared === "string" ? prepared : `\\x${prepared.toString("hex")}`;
  return `'${text.replaceAll("'", "''")}'`;
}
