import type { TestReceiver } from "./receiver.ts";

/** The JSON of the last `count` deliveries that a receiver got, once it has as many more. */
export async function deliveredBodies(
  receiver: TestReceiver,
  count: number,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const requests = await receiver.waitFor(count);
  return requests
    .slice(-count)
    .map(({ rawBody }) => JSON.parse(rawBody.toString()) as Record<string, unknown>);
}
