import type { TestReceiver } from "./receiver.ts";

/** Returns the JSON of the next `count` deliveries of a receiver. */
export async function deliveredBodies(
  receiver: TestReceiver,
  count: number,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const requests = await receiver.waitFor(count);
  return requests
    .slice(-count)
    .map(({ rawBody }) => JSON.parse(rawBody.toString()) as Record<string, unknown>);
}
