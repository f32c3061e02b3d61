import { maxPresentedBytes } from "../broker/message-limit.ts";
import { entityTagOf, hasEntityTag, recordChanged, type EntityTags } from "../http/conditional.ts";
import { AppError } from "../kit/errors.ts";
import type { BatchOperation } from "./batch-body.ts";
import { faultOfOperation } from "./batch-fault.ts";
import type { RecordOperations, WriteRequest } from "./record-operations.ts";
import type { Target } from "./permitted.ts";

/** Limit of the time of a batch, from the beginning of its first try. */
const limitMs = 30_000;

/** The operations of a batch, with their context. */
export interface Batch {
  readonly operations: readonly BatchOperation[];
  readonly records: RecordOperations;
  /** Request within a transaction, which an error of the batch rolls back. */
  readonly request: WriteRequest;
  /** Reserves memory for this number of bytes of the answer. */
  readonly reserve: (bytes: number) => Promise<void>;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
  /** Time at which its first try began. A batch that met a lock may run again. */
  readonly beganAt: number;
}

/**
 * Runs the operations in their order, so that each sees the writes of those before it. Consecutive
 * creates are written together when the result is the same, and so are deletes.
 *
 * @returns The body of the answer.
 * @throws The error of the first faulty operation, with its errors by their place in the batch.
 */
export async function runBatch(batch: Batch): Promise<string> {
  const { operations, reserve, now } = batch;
  const deadline = batch.beganAt + limitMs;
  const results: string[] = [];
  let bytes = 0;
  const take = async (given: readonly string[]): Promise<void> => {
    for (const result of given) {
      bytes += Buffer.byteLength(result);
      refuseTooLarge(bytes);
      await reserve(bytes);
      results.push(result);
    }
  };
  /** Index up to which operations run one by one, because some of them could not run together. */
  let oneByOne = 0;
  while (results.length < operations.length) {
    const index = results.length;
    if (now() > deadline)
      throw new AppError("server.unavailable", "Server Error", {
        cause: new Error(
          `The batch took longer than ${limitMs / 1000} s, at operation ${index} of ${operations.length}`,
        ),
      });
    const alike = index < oneByOne ? [] : alikeFrom(operations, index);
    oneByOne = Math.max(oneByOne, index + alike.length);
    try {
      const together = alike.length > 1 ? await runTogether(batch, alike) : undefined;
      await take(together ?? [await run(operations[index] as BatchOperation, batch)]);
    } catch (thrown) {
      throw faultOfOperation(operations[results.length] as BatchOperation, results.length, thrown);
    }
  }
  return `{"data":[${results.join(",")}]}`;
}

/** Limit of the operations that run together. A fault of one makes them run one by one. */
const mostTogether = 100;

/** Returns the consecutive creates or deletes from this index on. */
function alikeFrom(operations: readonly BatchOperation[], start: number): readonly BatchOperation[] {
  const some = operations.slice(start, start + mostTogether);
  const [first] = some;
  const end = some.findIndex(
    (one) => one.method !== first?.method || one.method === "update" || ("ifMatch" in one && one.ifMatch),
  );
  return end < 0 ? some : some.slice(0, end);
}

/**
 * Runs operations together. Returns undefined, with nothing written, when they must run one by one.
 */
async function runTogether(
  { records, request }: Batch,
  alike: readonly BatchOperation[],
): Promise<readonly string[] | undefined> {
  const bodies = alike.flatMap((one) => (one.method === "create" ? [one.data] : []));
  if (bodies.length > 0) return (await records.createMany(request, bodies))?.map(createdText);
  const ids = alike.flatMap((one) => (one.method === "delete" ? [one.id] : []));
  return (await records.removeMany(request, ids)) ? ids.map(() => deletedText) : undefined;
}

const deletedText = '{"status":204}';

function createdText(json: string): string {
  return `{"status":201,"record":${json}}`;
}

async function run(
  operation: BatchOperation,
  { records, request }: Pick<Batch, "records" | "request">,
): Promise<string> {
  if (operation.method === "create") return createdText((await records.create(request, operation.data)).json);
  const target = { id: operation.id, check: checkOf(operation.ifMatch) };
  if (operation.method === "delete") {
    await records.remove(request, target);
    return deletedText;
  }
  const { json } = await records.update(request, target, () => Promise.resolve(operation.data));
  return `{"status":200,"record":${json}}`;
}

function checkOf(tags: EntityTags | undefined): Target["check"] {
  if (tags === undefined) return undefined;
  return (json) => {
    if (!hasEntityTag(tags, entityTagOf(json))) throw recordChanged();
  };
}

function refuseTooLarge(bytes: number): void {
  if (bytes <= maxPresentedBytes) return;
  throw new AppError(
    "record.too_large",
    `The records of the answer are more than ${maxPresentedBytes} bytes of JSON. Nothing was written. Send fewer operations.`,
  );
}
