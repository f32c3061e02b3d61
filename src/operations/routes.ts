import type { Config } from "../config/load.ts";
import { shownSettings } from "../config/shown-settings.ts";
import type { Sql } from "../db/sql.ts";
import type { DeliveryHistory } from "../deliveries/history.ts";
import { actorOf } from "../http/actor.ts";
import { jsonAnswer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import type { PostOptions } from "../http/idempotency.ts";
import type { ApiRouter } from "../http/state.ts";
import type { Actor } from "../kit/actor.ts";
import { OperatorError } from "../kit/errors.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { includesScope } from "../kit/scopes.ts";
import { version } from "../kit/version.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import type { Definitions } from "../mapping/definition.ts";
import { prismaModelOf } from "../mapping/models.ts";
import { readListParameters } from "../querying/list-parameters.ts";
import type { ListsOptions } from "../querying/own-list.ts";
import { shownDefinition } from "../resources/show-definition.ts";
import { auditShape, readAuditPage } from "./audit-page.ts";
import { deadLetterShape, readDeadLetters } from "./dead-letters.ts";
import { haveAllReloaded, reloadAll, type Answer } from "./reload-all.ts";
import { faultInFile, faultOf, type ShownFault } from "./shown-fault.ts";
import { readStats } from "./stats.ts";

interface OperationRoutesOptions extends PostOptions, ListsOptions {
  readonly configuration: {
    readonly config: Config;
    readonly definitions: Definitions;
    readonly hash: string;
    readonly loadedAt: Date;
  };
  readonly sql: Sql;
  /** Reads lists by index, with its own time limit. */
  readonly listSql: Sql;
  readonly history: Pick<DeliveryHistory, "read">;
  /** Reads the configuration of this host again; throws OperatorError with every fault. */
  readonly read: () => Promise<unknown>;
  /** Records a reload that was refused for the files of this host. */
  readonly recordRefusal: (refusal: {
    readonly hash: string;
    readonly faults: readonly string[];
    readonly actor: Actor;
  }) => Promise<void>;
  /** The folder to which the paths in faults are relative. */
  readonly cwd: string;
  /**
   * Returns the number of messages in the queue of dead letters; rejects while the broker is
   * unavailable.
   */
  readonly deadDepth: () => Promise<number>;
}

/** Time that a request waits for the processes to reload; applying a large change takes longer. */
const reloadLimitMs = 20_000;

/** Adds the routes of operators: figures, audit trail, configuration, dead letters. */
export function addOperationRoutes(router: ApiRouter, options: OperationRoutesOptions): void {
  const { sql, listSql, listTurns, maxPerPage, cursors, history, urlOf, deadDepth } = options;

  router.get("/stats", async (ctx) => {
    const { caller, grant } = ctx.state;
    const showsWebhooks = includesScope(grant.scopes, "webhooks");
    const stats = await listTurns.run(caller.id, () => readStats(listSql, { caller, showsWebhooks }));
    ctx.body = { ...stats, caller: { is_admin: caller.isAdmin, scopes: grant.scopes } };
  });

  router.get("/audit", async (ctx) => {
    const userId = ctx.state.caller.id;
    const parameters = readListParameters(ctx.querystring, auditShape, { maxPerPage });
    const page = { sql: listSql, cursors, userId, url: urlOf(ctx) };
    ctx.body = await listTurns.run(userId, () => readAuditPage(parameters, page));
  });

  router.get("/dead-letters", async (ctx) => {
    const userId = ctx.state.caller.id;
    const parameters = readListParameters(ctx.querystring, deadLetterShape, { maxPerPage });
    const page = { sql, history, cursors, userId, url: urlOf(ctx) };
    const list = await listTurns.run(userId, () => readDeadLetters(parameters, page));
    ctx.body = { ...list, queued: await deadDepth().catch(() => null) };
  });

  router.get("/configuration", (ctx) => {
    ctx.body = shownConfiguration(options);
  });

  router.post("/configuration/reload", async (ctx) => {
    refuseFields(await readJsonBody(ctx), []);
    await options.answerPost(ctx, {
      longestMs: 2 * reloadLimitMs,
      async act() {
        const faults = await ownFaults(options, actorOf(ctx));
        const answers = faults.length > 0 ? [] : await reloadAll(sql, actorOf(ctx), reloadLimitMs);
        const processes = answers.map(presentAnswer);
        return jsonAnswer(200, { is_reloaded: haveAllReloaded(answers), faults, processes });
      },
    });
  });
}

function shownConfiguration({ configuration }: OperationRoutesOptions): Readonly<Record<string, unknown>> {
  const { config, definitions, hash, loadedAt } = configuration;
  return {
    version,
    hash,
    loaded_at: formatDateTime(loadedAt),
    resources: [...definitions.values()].map((definition) => ({
      name: definition.name,
      file: definition.file,
      definition: shownDefinition(definition, definitions),
      prisma_model: prismaModelOf(definition, definitions),
    })),
    settings: shownSettings(config).map(({ isSecret, isSet, isFixed, variable, ...setting }) => ({
      ...setting,
      variable: variable ?? null,
      is_secret: isSecret,
      is_set: isSet,
      takes_restart: isFixed,
    })),
  };
}

/**
 * Returns and records the faults of this host's files, which `svc-admin reload` also checks first.
 */
async function ownFaults(
  { read, recordRefusal, cwd, configuration }: OperationRoutesOptions,
  actor: Actor,
): Promise<readonly ShownFault[]> {
  try {
    await read();
    return [];
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    await recordRefusal({ hash: configuration.hash, faults: error.faults, actor });
    const { configDir } = configuration.config;
    return Promise.all(
      error.faults.slice(0, mostFaults).map((text) => faultInFile(text, { configDir, cwd })),
    );
  }
}

/** Most faults of an answer, which keeps it short. */
const mostFaults = 200;

function presentAnswer({ asked, outcome, configuration, faults }: Answer): Readonly<Record<string, unknown>> {
  const { program, host, pid } = asked;
  return {
    program,
    host,
    pid,
    outcome: outcome === "no answer" ? "no_answer" : outcome,
    configuration,
    faults: faults.slice(0, mostFaults).map(faultOf),
  };
}
