import { lookup, type LookupAddress, type LookupAllOptions } from "node:dns";

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;
export type Lookup = (hostname: string, options: LookupAllOptions, answer: Answer) => void;

/**
 * `dns.lookup`, asked once for a name however many want to know it at the same time.
 *
 * It runs on libuv's thread pool (4 threads unless UV_THREADPOOL_SIZE says more), and goes on for as long as the resolver takes, also
 * when nobody waits any more: without this, a handful of attempts to one name whose servers are dead would keep all other names waiting.
 */
export function createSharedLookup(resolve: Lookup = lookup): Lookup {
  const underway = new Map<string, Answer[]>();
  return (hostname, options, answer) => {
    const key = JSON.stringify([hostname, options]);
    const others = underway.get(key);
    if (others !== undefined) {
      others.push(answer);
      return;
    }
    const answers = [answer];
    underway.set(key, answers);
    resolve(hostname, options, (error, addresses) => {
      underway.delete(key);
      for (const each of answers) each(error, addresses);
    });
  };
}
