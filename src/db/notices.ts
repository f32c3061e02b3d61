import type { Pool } from "pg";

/**
 * Messages of the database about changes of its connections, which it sends beside the results of
 * statements.
 */
export interface Notices {
  /**
   * Calls the listener with the details of the messages of each transaction, once it is committed.
   * A detail is empty when only the database has the rest.
   *
   * @returns Removes the listener.
   */
  listen(listener: NoticeListener): () => void;
}

export type NoticeListener = (details: readonly string[]) => void;

/** Events of pg's connection that this module uses. */
interface Connection {
  on(event: "readyForQuery", listener: (message: { readonly status: string }) => void): void;
  on(event: "commandComplete", listener: (message: { readonly text: string }) => void): void;
  on(event: "errorMessage", listener: () => void): void;
}

/** Number of messages of a transaction: one for each statement of a batch, and the last. */
const mostNotices = 17;
/** Statement that makes the connections of a process get messages of `svc.enqueue_event()`. */
export const askForNotices = `SET svc.announced_events = ${mostNotices};`;

/**
 * The first line of the context, which the server writes: the function that sent the message.
 * Triggers of other people can send any message, but their functions have other names. A name with
 * other characters than these is in quotes.
 */
const isOfCapture = /^[^\n"]*(?<![a-z0-9_.])svc\.enqueue_event\(\)/;

/** Watches the connections of a pool, whose sessions have run `askForNotices`. */
export function createNotices(pool: Pool): Notices {
  const listeners = new Set<NoticeListener>();
  pool.on("connect", (client) => {
    const { connection } = client as unknown as { readonly connection: Connection };
    let details: string[] = [];
    // PostgreSQL may have undone a part of the transaction.
    const forget = (): void => {
      if (details.length > 0) details = [""];
    };
    client.on("notice", ({ detail = "", where = "" }) => {
      if (isOfCapture.test(where)) details.push(detail);
    });
    connection.on("errorMessage", forget);
    connection.on("commandComplete", ({ text }) => text === "ROLLBACK" && forget());
    connection.on("readyForQuery", ({ status }) => {
      if (details.length === 0 || status !== "I") return;
      const committed = details;
      details = [];
      for (const listener of listeners) listener(committed);
    });
  });
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
