import { partsOfTable } from "../db/names.ts";
import { clausesOf, type Statement } from "./statements.ts";

const dropped = /^You are about to drop the column `([^`]+)` on the `([^`]+)` table, which still contains/;
const madeAnew = /^The `[^`]+` column on the `[^`]+` table would be dropped and recreated/;
const noCast = "Changed the type of `";
const newRequired = "Added the required column `";
const nowRequired = /^Made the column `[^`]+` on table `[^`]+` required, but there are \d+ existing NULL/;

/**
 * Adds advice to a sentence of the schema engine on how to keep the values. The engine only names
 * the loss or the obstacle.
 *
 * @param statements Statements of the plan. A column that they add may be a dropped one under a new
 *   name, which the engine cannot know.
 */
export function withWayOn(sentence: string, statements: readonly Statement[]): string {
  if (madeAnew.test(sentence) || sentence.startsWith(noCast))
    return `${sentence} A migration by hand can keep the values: change the type there, with USING.`;
  if (sentence.startsWith(newRequired))
    return `${sentence} Give the field a default or "optional: true", or add the column and its values in a migration by hand.`;
  if (nowRequired.test(sentence)) return `${sentence} Give these rows a value first.`;
  const [, column, table] = dropped.exec(sentence) ?? [];
  if (column === undefined || table === undefined) return sentence;
  const added = clausesOf(statements).flatMap(({ table: of, clause: { action, kind, name } }) =>
    partsOfTable(of).name === table && action === "add" && kind === "column" ? [`\`${name}\``] : [],
  );
  if (added.length === 0) return sentence;
  return `${sentence} If it is now ${added.join(" or ")}, say "column: ${column}" there, or rename it in a migration by hand: its values stay then.`;
}
