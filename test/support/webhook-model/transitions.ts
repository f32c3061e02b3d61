import { readFileSync } from "node:fs";
import type { Sql } from "../../../src/db/sql.ts";

/** Records each change of a delivery's status, from and to; `-` stands for a missing row. */
export const journalTransitions = `
  CREATE TABLE seen_transitions (change text PRIMARY KEY, times int NOT NULL);
  CREATE FUNCTION note_transition() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO public.seen_transitions AS seen
    VALUES (CASE TG_OP WHEN 'INSERT' THEN '-' ELSE OLD.status END || ' to ' || CASE TG_OP WHEN 'DELETE' THEN '-' ELSE NEW.status END, 1)
    ON CONFLICT (change) DO UPDATE SET times = seen.times + 1;
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_transition AFTER INSERT OR DELETE ON svc.deliveries FOR EACH ROW EXECUTE FUNCTION note_transition();
  CREATE TRIGGER note_change AFTER UPDATE OF status ON svc.deliveries FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION note_transition()`;

export async function seenTransitions(sql: Sql): Promise<readonly string[]> {
  const rows = await sql<{ change: string }>("SELECT change FROM seen_transitions ORDER BY change");
  return rows.map(({ change }) => change);
}

/** Returns the transitions of the table in docs/webhooks.md, a line for each pair. */
export function documentedTransitions(): readonly string[] {
  const text = readFileSync("docs/webhooks.md", "utf8");
  const [, table = ""] = /^\| From \| To \|.*\n\|[-| ]+\n((?:\|.*\n)+)/m.exec(text) ?? [];
  const pairs = table
    .trimEnd()
    .split("\n")
    .flatMap((line) => {
      const [, from = "", to = ""] = line.split("|").map((cell) => cell.trim());
      return namesIn(from).flatMap((one) => namesIn(to).map((other) => `${one} to ${other}`));
    });
  return [...new Set(pairs)].toSorted();
}

function namesIn(cell: string): readonly string[] {
  return cell.split(",").map((name) => name.replaceAll("`", "").trim());
}
