import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { findExecutable, install } from "./apt.ts";
import {
  answers,
  freePort,
  makeFolder,
  type PrivateProcess,
  type PrivateServer,
  removeFolder,
  startProcess,
  untilServing,
} from "./private-process.ts";

const run = promisify(execFile);

export interface PrivateRabbitMq extends PrivateServer {
  /** Runs `rabbitmqctl` on this node and returns its output; takes about a second. */
  ctl(...args: readonly string[]): Promise<string>;
}

/** Returns the path of RabbitMQ's start script; undefined when it is not installed. */
export function findRabbitMq(): string | undefined {
  // Debian's wrapper in PATH changes to the user rabbitmq; the script behind it runs as any user.
  return findExecutable("rabbitmq-server", ["/usr/lib/rabbitmq/bin/rabbitmq-server"]);
}

/**
 * Ensures that RabbitMQ is installed, and returns the path of its start script. Throws with the
 * missing packages.
 */
export async function ensureRabbitMq(): Promise<string> {
  if (findRabbitMq() === undefined) await install(["rabbitmq-server"]);
  const script = findRabbitMq();
  if (script === undefined) throw new Error("rabbitmq-server was not found although it was installed");
  return script;
}

/**
 * Starts a private RabbitMQ node, beside any other of the machine, in about 5 s.
 *
 * @param parent Parent of its folder; default: the system's temporary folder.
 * @param settings Lines of its rabbitmq.conf in addition to those that a private node needs.
 */
export async function startPrivateRabbitMq({
  parent,
  settings: extraSettings = [],
}: { readonly parent?: string; readonly settings?: readonly string[] } = {}): Promise<PrivateRabbitMq> {
  const script = await ensureRabbitMq();
  const folder = makeFolder("rabbitmq", { parent });
  const [port, distPort, epmdPort] = [await freePort(), await freePort(), await freePort()];
  const password = randomBytes(12).toString("hex");
  const epmd = findExecutable("epmd", []);
  if (epmd === undefined) throw new Error("epmd, a part of Erlang, was not found");

  const settings = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    "default_user = svc",
    `default_pass = ${password}`,
    "disk_free_limit.absolute = 10MB",
    "raft.wal_max_size_bytes = 32000000",
    "log.console = true",
    "log.file = false",
    ...extraSettings,
  ];
  writeFileSync(join(folder, "rabbitmq.conf"), `${settings.join("\n")}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "enabled_plugins"), "[].\n");
  const env = {
    PATH: process.env["PATH"],
    LANG: "C.UTF-8",
    // Erlang writes its cookie there.
    HOME: folder,
    RABBITMQ_NODENAME: `svc-test-${randomBytes(4).toString("hex")}@localhost`,
    RABBITMQ_DIST_PORT: String(distPort),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq.conf"),
    RABBITMQ_CONF_ENV_FILE: join(folder, "none"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "enabled_plugins"),
    RABBITMQ_MNESIA_BASE: join(folder, "mnesia"),
    RABBITMQ_LOG_BASE: join(folder, "log"),
    RABBITMQ_PID_FILE: join(folder, "pid"),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
    // Together with -noinput below, the script is replaced by the node instead of waiting for it,
    // so that signals reach the node.
    RABBITMQ_ALLOW_INPUT: "1",
  };

  let names: PrivateProcess | undefined;
  let node: PrivateProcess | undefined;
  async function start(): Promise<void> {
    // Otherwise the node starts its own epmd daemon, which outlives it.
    if (names?.isRunning() !== true) {
      names = startProcess({ command: epmd as string, args: ["-port", String(epmdPort)], env, folder });
      await untilServing(names, {
        what: "epmd",
        // NAMES_REQ of the EPMD protocol.
        isServing: () => answers(epmdPort, Buffer.from([0, 1, 110])),
      });
    }
    node = startProcess({ command: script, args: ["-noinput"], env, folder });
    await untilServing(node, {
      what: "RabbitMQ",
      isServing: () => answers(port, Buffer.from("AMQP\u0000\u0000\u0009\u0001", "latin1")),
    });
  }

  async function ctl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run(join(dirname(script), "rabbitmqctl"), ["--quiet", ...args], {
      env,
      timeout: 20_000,
    });
    return stdout;
  }

  /**
   * Writes the register of queues to disk. RabbitMQ 3.10 syncs the messages of a quorum queue
   * before it confirms them, but records the place of a new queue only seconds after its
   * declaration. A node that is killed before then restarts with queues that confirm nothing, each
   * time. Queues in production are older than that, those of a test are not.
   */
  async function syncRegister(): Promise<void> {
    if (node?.isRunning() === true)
      await ctl("eval", "mnesia:sync_log(), [dets:sync(T) || T <- dets:all()].");
  }

  await start();
  return {
    url: `amqp://svc:${password}@127.0.0.1:${port}`,
    start,
    stop: async () => node?.end("SIGTERM"),
    async kill() {
      await syncRegister();
      await node?.end("SIGKILL");
    },
    async restart() {
      await node?.end("SIGTERM");
      await start();
    },
    pause: () => node?.signal("SIGSTOP"),
    resume: () => node?.signal("SIGCONT"),
    async dispose() {
      await node?.end("SIGKILL");
      await names?.end("SIGKILL");
      removeFolder(folder);
    },
    ctl,
  };
}
