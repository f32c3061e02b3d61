import { connect } from "amqplib";
import { topology } from "../../src/broker/topology.ts";

/** Empties every queue of the service. Skips missing queues. */
export async function purgeQueues(url: string): Promise<void> {
  await onEachQueue(url, (channel, queue) => channel.purgeQueue(queue));
}

/** Removes every queue of the service, even with consumers. */
export async function deleteQueues(url: string): Promise<void> {
  await onEachQueue(url, (channel, queue) => channel.deleteQueue(queue));
}

/** Removes every queue and exchange of the service, for a server that outlives the tests. */
export async function removeTopology(url: string): Promise<void> {
  await deleteQueues(url);
  await deleteExchanges(url);
}

/** Removes every exchange of the service, with its bindings. */
export async function deleteExchanges(url: string): Promise<void> {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  for (const { name } of topology.exchanges) await channel.deleteExchange(name);
  await connection.close();
}

type Channel = Awaited<ReturnType<Awaited<ReturnType<typeof connect>>["createChannel"]>>;

async function onEachQueue(
  url: string,
  act: (channel: Channel, queue: string) => Promise<unknown>,
): Promise<void> {
  const connection = await connect(url);
  connection.on("error", () => undefined);
  for (const { name } of topology.queues) {
    // Uses a channel for each: checking a missing queue closes its channel.
    const channel = await connection.createChannel();
    channel.on("error", () => undefined);
    try {
      await act(channel, name);
    } catch (error) {
      if ((error as { code?: number }).code !== 404) throw error;
    }
  }
  await connection.close();
}
