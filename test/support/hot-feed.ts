import { createEventFeed } from "../../src/events/event-feed.ts";
import { makeCaller } from "./callers.ts";
import type { HotWork } from "./hot-work.ts";

const caller = makeCaller({ id: 1, name: "Ada", email: "ada@example.com", isAdmin: true });
/** The newest half of the history is about one record. */
const query = { resources: ["orders", "notes"], recordId: "1" };

/** Statements of the event feed, for a record with many events. */
export const feedWorks: readonly HotWork[] = (
  [
    ["all", { resources: ["orders"] }],
    ["a record with many", query],
    ["a record with few", { ...query, recordId: "7" }],
    ["a record and a trigger", { ...query, triggers: ["on_delete"] }],
  ] as const
).flatMap(([what, asked]) =>
  (["oldest", "newest"] as const).map((first): HotWork => ({
    name: `feed: ${what}, ${first} first`,
    pool: "lists",
    ...("recordId" in asked && { isByIndex: true }),
    mostRead: 2_002,
    async run(sql) {
      const feed = createEventFeed({
        sql,
        listSql: sql,
        horizon: () => Promise.resolve(10n ** 12n),
        judge: (pairs) => Promise.resolve(pairs.map(() => true)),
        present: () => Promise.resolve({ kind: "none", reason: "", isPassing: false }),
      });
      const options = { query: asked, caller, take: 15 };
      await (first === "oldest"
        ? feed.read({ ...options, after: 0n })
        : feed.readBack({ ...options, before: undefined }));
    },
  })),
);
