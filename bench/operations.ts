import { callerOf, type CallApi } from "./call-api.ts";
import { processCpuMicros, familyCpuMicros } from "./cpu.ts";
import { perItem, readMeters, usedSince } from "./deliveries.ts";
import { startProgram } from "./program.ts";
import { batchBody, batchSize, collections, filteredPath, noteBody, orderBody } from "./request-specs.ts";
import { allPublished, type BenchContext } from "./requests.ts";
import { countStatements, walBytes, type StatementCount } from "./statements.ts";

/**
 * The cost of one kind of request, sent one after another, including its event's publish and
 * fan-out.
 */
export interface Operation {
  readonly name: string;
  readonly statements: StatementCount;
  /** CPU of `svc api`, including the relay. */
  readonly apiMicros: number;
  readonly postgresMicros: number;
  readonly walBytes: number;
}

export interface OperationResults {
  readonly operations: readonly Operation[];
  /** Creates with the capture trigger, and without. */
  readonly captured: StatementCount;
  readonly uncaptured: StatementCount;
}

/**
 * Measures statements, CPU and WAL by operation, and the cost of a create in PostgreSQL, by
 * statement.
 */
export async function measureOperations(context: BenchContext): Promise<OperationResults> {
  const { surroundings, progress, scale } = context;
  const databaseUrl = await surroundings.copyDatabase("svc_operations");
  const pool = surroundings.connect(databaseUrl);
  // Also tracks statements within triggers, from the next session on.
  await pool.query("ALTER DATABASE svc_operations SET pg_stat_statements.track = 'all'");
  const api = await startProgram(context, "api", { databaseUrl });
  const dispatcher = await startProgram(context, "dispatcher", {
    databaseUrl: surroundings.urlOfDispatcher(databaseUrl),
  });
  const send = callerOf({ port: api.port, token: surroundings.token });
  const meters = {
    api: () => processCpuMicros(api.pid),
    postgresql: () => familyCpuMicros(surroundings.postgresPid),
  };
  const count = Math.max(20, Math.round(200 * scale));
  const operations: Operation[] = [];
  for (const [name, { operate, unitsPerRequest = 1 }] of Object.entries(kinds(send))) {
    progress(`costs: ${name}`);
    // Prepares the statements on every connection that a single client uses.
    for (let id = 1_001; id <= 1_010; id += 1) await operate(id);
    await allPublished(pool);
    const before = readMeters(meters);
    const walBefore = await walBytes(pool);
    const requests = unitsPerRequest === 1 ? count : Math.ceil(count / 10);
    const statements = await countStatements(pool, async () => {
      for (let id = 1; id <= requests; id += 1) await operate(id);
      await allPublished(pool);
      return requests;
    });
    const { api: apiMicros = 0, postgresql: postgresMicros = 0 } = perItem(
      usedSince(meters, before),
      requests,
    );
    operations.push({
      name,
      statements,
      apiMicros,
      postgresMicros,
      walBytes: ((await walBytes(pool)) - walBefore) / requests,
    });
  }

  progress("what a create costs PostgreSQL");
  const create = (): Promise<StatementCount> =>
    countStatements(pool, async () => {
      for (let made = 0; made < count * 2; made += 1) await send("POST", collections.notes, noteBody);
      await allPublished(pool);
      return count * 2;
    });
  const captured = await create();
  await pool.query("ALTER TABLE notes DISABLE TRIGGER USER");
  const uncaptured = await create();
  await api.stop();
  await dispatcher.stop();
  return { operations, captured, uncaptured };
}

interface Kind {
  readonly operate: (id: number) => Promise<unknown>;
  readonly unitsPerRequest?: number;
}

function kinds(send: CallApi): Readonly<Record<string, Kind>> {
  const { notes, orders, tasks, openTasks } = collections;
  let made = 0;
  const order = (): string => orderBody.replace("{unique}", `one-${(made += 1)}`);
  const task = JSON.stringify({ title: "A task", project_id: 77 });
  return {
    "a list of 15": { operate: () => send("GET", notes) },
    "a page by cursor, filtered and sorted": { operate: () => send("GET", filteredPath) },
    "a single record": { operate: (id) => send("GET", `${notes}/${id}`) },
    "a create": { operate: () => send("POST", notes, noteBody) },
    "an update": {
      operate: (id) => send("PUT", `${notes}/${id}`, JSON.stringify({ title: `Another title ${id}` })),
    },
    "a delete": { operate: (id) => send("DELETE", `${notes}/${id}`) },
    [`a batch of ${batchSize} creates`]: {
      operate: () => send("POST", `${notes}/batch`, batchBody),
      unitsPerRequest: batchSize,
    },
    "a list of 15 orders, with their customers": { operate: () => send("GET", orders) },
    "a single order, with its customer": { operate: (id) => send("GET", `${orders}/${id}`) },
    "an order by a create": { operate: () => send("POST", orders, order()) },
    "a list of 15, with a team's rule of access": { operate: () => send("GET", tasks) },
    "the same without the rule": { operate: () => send("GET", openTasks) },
    "a single record, with a team's rule": { operate: (id) => send("GET", `${tasks}/${id}`) },
    "the same record without the rule": { operate: (id) => send("GET", `${openTasks}/${id}`) },
    "a create, with a team's rule": { operate: () => send("POST", tasks, task) },
    "the same create without the rule": { operate: () => send("POST", openTasks, task) },
  };
}
