import { type Attack, fresh, notes, removeRecords, sends } from "./attack.ts";

/** Limit of the service for the operations of one batch. */
const mostOperations = 1_000;

export function batchOf(count: number, fields: object = {}): string {
  const operations = Array.from({ length: count }, () => `{"method":"create","data":${fresh(fields)}}`);
  return `{"operations":[${operations.join(",")}]}`;
}

/**
 * Attacks by concurrent batches of one user. They wait for each other, and get half of the
 * connections.
 */
export const batchAttacks: readonly Attack[] = [
  {
    name: "batches of 1,000 creates",
    prepare: removeRecords,
    run: sends(20, () => ({ method: "POST", path: `${notes}/batch`, body: batchOf(mostOperations) })),
  },
  {
    name: "batches of 1 MB",
    prepare: removeRecords,
    run: sends(50, () => ({
      method: "POST",
      path: `${notes}/batch`,
      body: batchOf(mostOperations, { text: "a".repeat(900) }),
    })),
  },
  {
    name: "batches whose last of 1,000 operations is refused",
    prepare: removeRecords,
    run: sends(20, () => ({
      method: "POST",
      path: `${notes}/batch`,
      body: batchOf(mostOperations).replace(/\{"method":"create","data":\{[^{}]*\}\}\]\}$/, (last) =>
        last.replace('"amount":"1"', '"amount":"none"'),
      ),
    })),
  },
];
