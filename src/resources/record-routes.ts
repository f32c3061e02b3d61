import type { InTransaction, Transaction } from "../db/transaction.ts";
import type { Answer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import { checkConditions, entityTagOf, isConditional, isKnown } from "../http/conditional.ts";
import { memoryPerAnsweredByte } from "../http/error-body.ts";
import type { PostOptions } from "../http/idempotency.ts";
import { checkSender } from "../http/sender.ts";
import { paramOf, type ApiContext } from "../http/state.ts";
import { urlAt, type UrlOf } from "../http/url-of.ts";
import type { Caller } from "../kit/caller.ts";
import { overloadedError } from "../kit/errors.ts";
import { memoryPerBodyByte } from "../kit/memory-weights.ts";
import type { FairPlaces } from "../kit/fair-places.ts";
import type { Turns } from "../kit/turns.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import type { AccessConditions } from "./access.ts";
import { refuseDelete, refuseWrite, refusingAtCommit } from "./refusals.ts";
import { readBatch, refuseUnsupported } from "./batch-body.ts";
import { runBatch } from "./batch.ts";
import type { Target } from "./permitted.ts";
import { idInPath, pathOfId } from "./record-id.ts";
import {
  createRecordOperations,
  type DatabaseAccess,
  type RecordOperations,
  type WriteRequest,
} from "./record-operations.ts";

/**
 * Turns of batches. They keep the batches of one user, and the batches of all users, from using all
 * connections.
 */
export interface BatchTurns {
  readonly users: Turns;
  readonly all: FairPlaces;
  /**
   * Limit of the wait of a batch for both turns. Its answer must come within the 60 s of
   * http/server.ts.
   */
  readonly waitMs: number;
}

export interface RecordRoutesOptions extends PostOptions {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly access: AccessConditions;
  /** Returns the database access: over the pool, or within a transaction. */
  readonly databaseFor: (caller: Caller, transaction?: Transaction) => DatabaseAccess;
  /** Returns a function that runs a transaction in a turn of the user and the resource. */
  readonly inTransactionFor: (caller: Caller) => InTransaction;
  readonly batchTurns: BatchTurns;
  /** Creates the address of a new record. */
  readonly urlOf: UrlOf;
  /** Called after every successful write. */
  readonly onChange: () => void;
}

export type Handler = (ctx: ApiContext) => Promise<void>;

/** Handlers of the requests for single records of a resource, by operation. */
type RecordHandlers = Readonly<Record<"show" | "create" | "update" | "remove" | "batch", Handler>>;

/**
 * Size in bytes of a large request body. Together with the existing record, it may be too large for
 * an event.
 */
const largeBodyBytes = 64 * 1024;

export function createRecordHandlers(options: RecordRoutesOptions): RecordHandlers {
  const { definition, definitions, access, databaseFor, inTransactionFor, answerPost, urlOf, onChange } =
    options;
  const records = createRecordOperations({ definition, definitions, access });
  const refuse = (error: unknown): never => refuseWrite(definition, error);

  /**
   * Returns the request for an operation. A small body adds too little to need a transaction. When
   * such a request, or another program, makes a record too large, the relay refuses its event.
   */
  function requestOf({ request, state: { caller } }: ApiContext, transaction?: Transaction): WriteRequest {
    const isLarge = definition.triggers.length > 0 && (request.length ?? Infinity) > largeBodyBytes;
    return { database: databaseFor(caller, transaction), caller, isLarge };
  }

  const targetOf = (ctx: ApiContext): Target => {
    const check = (json: string): void => {
      ctx.state.turn.madeBytes += json.length;
      checkConditions(ctx, entityTagOf(json));
    };
    return { id: idIn(ctx, definition), check: isConditional(ctx) ? check : undefined };
  };

  return {
    async show(ctx) {
      const json = await records.show(requestOf(ctx), idIn(ctx, definition));
      const tag = sendRecord(ctx, json);
      if (!isKnown(ctx, tag)) return;
      ctx.status = 304;
      ctx.state.turn.madeBytes += json.length;
    },

    async create(ctx) {
      records.refuseCreate(ctx.state.caller);
      const body = await readJsonBody(ctx);
      await answerPost(ctx, {
        inTransaction: refusingAtCommit(inTransactionFor(ctx.state.caller), refuse),
        async act(transaction) {
          const { id, json } = await records.create(requestOf(ctx, transaction), body);
          ctx.state.recordId = id;
          const headers = { ETag: entityTagOf(json), Location: urlAt(urlOf(ctx), pathOfId(definition, id)) };
          return { status: 201, headers, json };
        },
      });
      onChange();
    },

    async update(ctx) {
      const { json, isWritten } = await records.update(requestOf(ctx), targetOf(ctx), () =>
        readJsonBody(ctx),
      );
      if (isWritten) onChange();
      sendRecord(ctx, json);
    },

    async remove(ctx) {
      await records.remove(requestOf(ctx), targetOf(ctx));
      onChange();
      ctx.status = 204;
    },

    async batch(ctx) {
      await answerBatch(ctx, records, options, (transaction) => ({
        ...requestOf(ctx, transaction),
        // A batch always runs in a transaction.
        isLarge: true,
      }));
      onChange();
    },
  };
}

async function answerBatch(
  ctx: ApiContext,
  records: RecordOperations,
  { definition, inTransactionFor, answerPost, batchTurns }: RecordRoutesOptions,
  requestOf: (transaction: Transaction) => WriteRequest,
): Promise<void> {
  const operations = readBatch(await readJsonBody(ctx));
  const isDelete = operations.every(({ method }) => method === "delete");
  const committing = refusingAtCommit(inTransactionFor(ctx.state.caller), (error) =>
    isDelete ? refuseDelete(error) : refuseWrite(definition, error),
  );
  const { rawBody = "" } = ctx.request as { readonly rawBody?: string };
  const bodyBytes = Buffer.byteLength(rawBody);
  const reserve = (bytes: number): Promise<void> =>
    ctx.state.memory.reserve(bodyBytes * memoryPerBodyByte + bytes * memoryPerAnsweredByte);
  let beganAt: number | undefined;
  const act = async (transaction: Transaction): Promise<Answer> => {
    beganAt ??= now();
    refuseUnsupported(operations, definition);
    await transaction.sql(statementLimit);
    const request = requestOf(transaction);
    const json = await runBatch({ operations, records, request, reserve, now, beganAt });
    return { status: 200, headers: {}, json };
  };
  await inBatchTurn(ctx, batchTurns, () =>
    answerPost(ctx, {
      inTransaction: committing,
      act: (transaction) => (transaction === undefined ? committing(act) : act(transaction)),
    }),
  );
}

/**
 * Runs a batch in its turns.
 *
 * @throws AppError `server.overloaded` when earlier batches take too long.
 */
async function inBatchTurn(
  ctx: ApiContext,
  { users, all, waitMs }: BatchTurns,
  act: () => Promise<void>,
): Promise<void> {
  const { id } = ctx.state.caller;
  const deadline = performance.now() + waitMs;
  // A waiting batch does not block other requests of its user.
  if (!(await ctx.state.turn.pause(() => users.takeWithin(id, waitMs)))) throw overloadedError(5);
  try {
    const done = await all.runWithin(id, deadline - performance.now(), async () => {
      // A client that has left would not get the result of the write.
      if (ctx.res.destroyed) return true;
      await checkSender(ctx);
      await act();
      return true;
    });
    if (done === undefined) throw overloadedError(5);
  } finally {
    users.leave(id);
  }
}

const now = (): number => performance.now();

/** Limit of a statement, because a batch checks the clock only between its statements. */
const statementLimit = "SET LOCAL statement_timeout = '10s'";

function idIn(ctx: ApiContext, definition: Definition): string {
  const id = idInPath(definition, ctx.path, paramOf(ctx, "id"));
  ctx.state.recordId = id;
  return id;
}

/**
 * Sends a record.
 *
 * @returns The entity tag.
 */
function sendRecord(ctx: ApiContext, json: string): string {
  const tag = entityTagOf(json);
  ctx.set("ETag", tag);
  ctx.type = "json";
  ctx.body = json;
  return tag;
}
