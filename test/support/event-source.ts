/** A minimal client of Server-Sent Events. */
export interface EventSource {
  readonly status: number;
  readonly contentType: string | null;
  /** Parsed `data` of every message, in order. */
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Returns the id of the last message or mark. */
  lastId(): string | undefined;
  readonly comments: readonly string[];
  /** Returns whether the server has ended the stream. */
  isEnded(): boolean;
  close(): void;
}

export async function openEventSource(
  url: string,
  { token, lastEventId }: { readonly token: string; readonly lastEventId?: string },
): Promise<EventSource> {
  const aborting = new AbortController();
  const response = await fetch(url, {
    signal: aborting.signal,
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
  });
  const messages: Readonly<Record<string, unknown>>[] = [];
  const comments: string[] = [];
  let id: string | undefined;
  let isEnded = false;
  const take = (block: string): void => {
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) comments.push(line);
      if (line.startsWith("id: ")) id = line.slice(4);
      if (line.startsWith("data: ")) messages.push(JSON.parse(line.slice(6)) as Record<string, unknown>);
    }
  };
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      blocks.forEach(take);
    }
  };
  read()
    .catch(() => undefined)
    .finally(() => (isEnded = true));
  return {
    status: response.status,
    contentType: response.headers.get("content-type"),
    messages,
    lastId: () => id,
    comments,
    isEnded: () => isEnded,
    close: () => aborting.abort(),
  };
}
