import { createDeliver } from "./deliveries/deliver.ts";
import { createFanOut } from "./deliveries/fan-out.ts";
import type { ScheduleOf } from "./deliveries/schedule.ts";
import { createSender } from "./deliveries/send.ts";
import { createDeliveryStore } from "./deliveries/store.ts";
import { createSweep } from "./deliveries/sweep.ts";
import type { Foundation } from "./foundation.ts";
import { isAdminFor } from "./resources/access.ts";
import { createSubscriberFinder } from "./subscriptions/find-subscribers.ts";
import { createSecretBox } from "./subscriptions/secret.ts";
import { runWorkers, type Running } from "./running.ts";
import type { Caller } from "./users/caller.ts";

/** `svc dispatcher`: fans events out, and makes the deliveries. */
export async function startDispatcher({
  config,
  log,
  definitions,
  sql,
  broker,
  secretKey,
}: Foundation): Promise<Running> {
  const { webhooks } = config;
  const store = createDeliveryStore({ sql });
  const sender = createSender({
    timeoutMs: webhooks.timeoutMs,
    allowedNetworks: webhooks.allowedNetworks,
    maxSockets: webhooks.concurrency,
  });
  const secrets = createSecretBox(secretKey);
  const scheduleOf = createScheduleOf({ config, definitions });
  // A resource that left the mapping files has no admins: what is still under way for it stays with the owners.
  const mayAdminister = (resource: string, user: Caller): boolean => {
    const definition = definitions.get(resource);
    return definition !== undefined && isAdminFor(definition, user);
  };
  // The in-process broker begins empty, so nothing that was believed to be in it is.
  if (config.broker.url === undefined) await store.forgetQueued();

  const running = runWorkers({
    log,
    workers: [
      createFanOut({
        broker,
        store,
        findSubscribers: createSubscriberFinder({ sql, definitions }),
        scheduleOf,
        requeueAfterMs: webhooks.requeueAfterMs,
        log,
      }),
      createDeliver({
        broker,
        store,
        send: sender.send,
        decryptSecret: secrets.decrypt,
        isAdminFor: mayAdminister,
        scheduleOf,
        jitter: webhooks.jitter,
        timeoutMs: webhooks.timeoutMs,
        concurrency: webhooks.concurrency,
        log,
        random: Math.random,
      }),
      createSweep({
        broker,
        store,
        log,
        intervalMs: webhooks.sweepIntervalMs,
        requeueAfterMs: webhooks.requeueAfterMs,
      }),
    ],
  });
  return {
    failed: running.failed,
    async stop() {
      await running.stop();
      sender.close();
    },
  };
}

function createScheduleOf({ config, definitions }: Pick<Foundation, "config" | "definitions">): ScheduleOf {
  const { maxAttempts, backoffMs } = config.webhooks;
  return (resource) => {
    const definition = definitions.get(resource);
    const backoff = definition?.code.webhookBackoff?.() ?? definition?.webhookBackoff;
    return {
      maxAttempts: definition?.code.webhookMaxAttempts?.() ?? definition?.webhookMaxAttempts ?? maxAttempts,
      backoffMs: backoff === undefined ? backoffMs : backoff.map((seconds) => seconds * 1_000),
    };
  };
}
