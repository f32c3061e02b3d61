import { AppError } from "../../src/kit/errors.ts";
import type { MemoryBudget } from "../../src/http/memory-budget.ts";

export const [ada, bob, eve] = [1, 2, 3];

/** Returns whether it resolves once all pending callbacks have run. */
export async function isGranted(reservation: Promise<void>): Promise<boolean> {
  const late = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([reservation.then(() => true), late]);
}

export async function refusalOf(reservation: Promise<void>): Promise<unknown> {
  return reservation.then(
    () => undefined,
    (error: unknown) => error,
  );
}

export async function resultOf(reservation: Promise<void>): Promise<unknown> {
  const refusal = refusalOf(reservation);
  const isOver = await isGranted(refusal.then(() => undefined));
  const error = isOver ? await refusal : "waits";
  return error instanceof AppError ? error.status : (error ?? "granted");
}

/** Returns what a request gets that ends at once. */
export async function tryOut(budget: MemoryBudget, userId: number, bytes: number): Promise<unknown> {
  const request = budget.open(userId);
  const result = await resultOf(request.reserve(bytes));
  request.release();
  return result;
}
