import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import { createSender, type Sender, type SendResult } from "../../src/deliveries/attempt/send.ts";

export const deliveryBytes = Buffer.from('{"event":"on_create","data":{"name":"Zoë"}}');
export const deliveryHeaders = {
  "Content-Type": "application/json",
  "X-Service-Signature": "sha256=00",
  "X-Service-Event": "e-1",
  "X-Service-Delivery": "d-1",
  "User-Agent": "Service-Webhook/1.0",
};

type SenderOptions = Partial<Parameters<typeof createSender>[0]>;

/** Real senders of one fixed delivery, which may send to this machine by default. */
export interface TestSenders {
  /** Opens one sender with its connections, for several posts. */
  open(options?: SenderOptions): {
    /** Posts, by default for a user without the admin flag. */
    readonly post: (url: string, user?: { readonly isAdmin: boolean }) => Promise<AttemptResult>;
    /** Posts for the user with this id; by default the delivery's bytes. */
    readonly postFor: (userId: number, url: string, body?: readonly Uint8Array[]) => Promise<SendResult>;
    readonly close: () => void;
  };
  openSender(options?: SenderOptions): Sender;
  /** Makes one post with a new sender. */
  send(url: string, options?: SenderOptions): Promise<AttemptResult>;
  close(): void;
}

export function createTestSenders(): TestSenders {
  const opened: Sender[] = [];
  const senders: TestSenders = {
    openSender(options = {}) {
      const networks = { allowedNetworks: ["127.0.0.0/8", "::1/128"], adminNetworks: [] };
      const sender = createSender({ timeoutMs: 10_000, maxSockets: 8, ...networks, ...options });
      opened.push(sender);
      return sender;
    },
    open(options) {
      const sender = senders.openSender(options);
      const headers = deliveryHeaders;
      return {
        async post(url, { isAdmin } = { isAdmin: false }) {
          const sent = await sender.send({ url, headers, body: [deliveryBytes] }, { id: 1, isAdmin });
          if (sent.kind === "unmade") throw new Error(`No attempt was made: ${sent.reason}`);
          return sent.result;
        },
        postFor: (id, url, body = [deliveryBytes]) =>
          sender.send({ url, headers, body }, { id, isAdmin: false }),
        close: () => sender.close(),
      };
    },
    send: (url, options) => senders.open(options).post(url),
    close() {
      for (const sender of opened.splice(0)) sender.close();
    },
  };
  return senders;
}
