import type { Sql } from "../../src/db/sql.ts";
import { createOutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createOutbox } from "../../src/events/outbox.ts";
import { createOwnEvents } from "../../src/events/own-events.ts";

export async function readOwn(sql: Sql): Promise<unknown> {
  const resources = Array.from({ length: 50 }, (_, index) => (index === 0 ? "orders" : `others${index}`));
  const own = createOwnEvents({ resources, writer: () => "svc api", take: () => true }).next();
  return sql(own?.text ?? "", own?.values);
}

export async function readOutbox(sql: Sql): Promise<void> {
  const resources = ["orders", "notes"];
  const outbox = createOutbox({ sql });
  const cursor = createOutboxCursor(resources);
  // The first read takes everything for new; later ones have what it left over too.
  for (let turn = 0; turn < 3; turn += 1) {
    const share = { name: "svc bench", pool: "pool", others: [], index: 0 };
    const scans = cursor.scans(resources);
    const { snapshot, scanned } = await outbox.read({
      scans,
      share,
      known: [],
      limit: 200,
      maxBytes: 4_000_000,
    });
    cursor.advance(snapshot, scanned);
  }
}
