import { deleteExchanges, deleteQueues, purgeQueues } from "../../test/support/queues.ts";
import type { Manner } from "./receivers.ts";
import type { Fault, FaultKind, PlannedFault } from "./schedule.ts";
import { createSteering } from "./steering.ts";
import { useUpConnections } from "./used-up.ts";
import { faultyReceivers, ownApplication, receiverManners, type System } from "./system.ts";

const nothing = async (): Promise<void> => undefined;

/** Default of `rabbitmqctl`. Above this share of memory, RabbitMQ blocks publishers. */
const usualWatermark = "0.4";

/** Creates a fault of the planned kind for the system. */
export function createFault(system: System, planned: PlannedFault): Fault {
  const { postgres, rabbitMq, apis, dispatchers, receivers, pool, links } = system;
  const { kind, targets } = planned;
  const killed = (processes: System["apis"]): Fault => ({
    begin: () => Promise.all(targets.map((target) => processes[target]?.kill())),
    heal: async () => targets.forEach((target) => processes[target]?.revive()),
  });
  const stopped = (processes: System["apis"]): Fault => ({
    begin: async () => targets.forEach((target) => processes[target]?.program.signal("SIGSTOP")),
    heal: async () => targets.forEach((target) => processes[target]?.program.signal("SIGCONT")),
  });
  const receiverThat = (manner: Manner): Fault => {
    const receiver = faultyReceivers[targets[0] ?? 0] ?? faultyReceivers[0];
    const behave = (how: Manner): Promise<unknown> =>
      receivers.ask({ kind: "behave", receiver, manner: how });
    return { begin: () => behave(manner), heal: () => behave(receiverManners[receiver] ?? "well") };
  };
  const setReadOnly = async (text: string): Promise<void> => {
    await pool.query(text);
    await pool.query("SELECT pg_reload_conf()");
  };
  const cutOff = (name: "api" | "dispatcher", server: "PostgreSQL" | "RabbitMQ"): Fault => {
    const proxies = targets.flatMap((target) => links[name][target]?.[server] ?? []);
    return {
      begin: async () => proxies.forEach((proxy) => proxy.stall()),
      heal: async () => proxies.forEach((proxy) => proxy.resume()),
    };
  };
  const faults: Readonly<Record<FaultKind, () => Fault>> = {
    "api killed": () => killed(apis),
    "dispatcher killed": () => killed(dispatchers),
    "api stopped": () => stopped(apis),
    "dispatcher stopped": () => stopped(dispatchers),
    "connections terminated": () => ({
      begin: () =>
        pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND application_name <> $1`,
          [ownApplication],
        ),
      heal: nothing,
    }),
    "PostgreSQL crashed": () => ({ begin: () => postgres.crash(), heal: () => postgres.start() }),
    "PostgreSQL read-only": () => ({
      begin: () => setReadOnly("ALTER SYSTEM SET default_transaction_read_only = on"),
      heal: () => setReadOnly("ALTER SYSTEM RESET default_transaction_read_only"),
    }),
    "PostgreSQL connections used up": () => useUpConnections(system),
    "RabbitMQ killed": () => ({ begin: () => rabbitMq.kill(), heal: () => rabbitMq.start() }),
    "RabbitMQ connections closed": () => ({
      begin: () => rabbitMq.ctl("close_all_connections", "chaos"),
      heal: nothing,
    }),
    "queues purged": () => ({ begin: () => purgeQueues(rabbitMq.url), heal: nothing }),
    "queues deleted": () => ({ begin: () => deleteQueues(rabbitMq.url), heal: nothing }),
    "exchanges deleted": () => ({ begin: () => deleteExchanges(rabbitMq.url), heal: nothing }),
    "RabbitMQ memory alarm": () => ({
      begin: () => rabbitMq.ctl("set_vm_memory_high_watermark", "0.0001"),
      heal: () => rabbitMq.ctl("set_vm_memory_high_watermark", usualWatermark),
    }),
    "api cut off from PostgreSQL": () => cutOff("api", "PostgreSQL"),
    "api cut off from RabbitMQ": () => cutOff("api", "RabbitMQ"),
    "dispatcher cut off from PostgreSQL": () => cutOff("dispatcher", "PostgreSQL"),
    "dispatcher cut off from RabbitMQ": () => cutOff("dispatcher", "RabbitMQ"),
    "receiver down": () => receiverThat("down"),
    "receiver hanging": () => receiverThat("hanging"),
    "receiver resetting": () => receiverThat("resetting"),
    "receiver dripping": () => receiverThat("dripping"),
    "receiver endless": () => receiverThat("endless"),
    ...createSteering(system, planned),
  };
  return faults[kind]();
}
