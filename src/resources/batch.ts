import { maxPresentedBytes } from "../broker/message-limit.ts";
import { hasEntityTag, recordChanged, type EntityTags } from "../http/conditional.ts";
import { AppError } from "../kit/errors.ts";
import type { BatchOperation } from "./batch-body.ts";
import { faultOfOperation } from "./batch-fault.ts";
import type { RecordOperations, WriteRequest } from "./record-operations.ts";

/** How long a batch may hold its connection. */
const limitMs = 30_000;

export interface Batch {
  readonly operations: readonly BatchOperation[];
  readonly records: RecordOperations;
  /** Within a transaction, which what this throws rolls back. */
  readonly request: WriteRequest;
  /** Makes sure of memory for so many bytes of the answer. */
  readonly reserve: (bytes: number) => Promise<void>;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/**
 * Does the operations one by one, so that each sees what those before it have written.
 *
 * @returns The body of the answer.
 * @throws What the first operation with a fault throws, its errors by their place in the batch.
 */
export async function runBatch({ operations, records, request, reserve, now }: Batch): Promise<string> {
  const deadline = now() + limitMs;
  const results: string[] = [];
  let bytes = 0;
  for (const [index, operation] of operations.entries()) {
    if (now() > deadline)
      throw new AppError("server.unavailable", "Server Error", {
        cause: new Error(
          `The batch took longer than ${limitMs / 1000} s, at operation ${index} of ${operations.length}`,
        ),
      });
    try {
      const result = await run(operation, records, request);
      bytes += Buffer.byteLength(result);
      refuseTooLarge(bytes);
      await reserve(bytes);
      results.push(result);
    } catch (thrown) {
      throw faultOfOperation(operation, index, thrown);
    }
  }
  return `{"data":[${results.join(",")}]}`;
}

async function run(
  operation: BatchOperation,
  records: RecordOperations,
  request: WriteRequest,
): Promise<string> {
  if (operation.method === "create")
    return `{"status":201,"record":${(await records.create(request, operation.data)).json}}`;
  const target = { id: operation.id, check: checkOf(operation.ifMatch) };
  if (operation.method === "delete") {
    await records.remove(request, target);
    return '{"status":204}';
  }
  const { json } = await records.update(request, target, () => Promise.resolve(operation.data));
  return `{"status":200,"record":${json}}`;
}

function checkOf(tags: EntityTags | undefined): ((tag: string) => void) | undefined {
  if (tags === undefined) return undefined;
  return (tag) => {
    if (!hasEntityTag(tags, tag)) throw recordChanged();
  };
}

function refuseTooLarge(bytes: number): void {
  if (bytes <= maxPresentedBytes) return;
  throw new AppError(
    "record.too_large",
    `The records of the answer are more than ${maxPresentedBytes} bytes of JSON. Nothing was written. Send fewer operations.`,
  );
}
