/** One message of Server-Sent Events. Without data, it only gives the position of the stream. */
interface StreamMessage {
  readonly id: string | null;
  readonly data: string | null;
}

/**
 * Reads the messages of a stream as they arrive. Does not use EventSource, which cannot send a
 * token.
 */
export async function* readMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamMessage> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      yield* parts.map(toMessage);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * Parses the lines of one message. Comments, which keep the connection open, have neither id nor
 * data.
 */
function toMessage(text: string): StreamMessage {
  const lines = text.split("\n");
  const of = (name: string): string[] =>
    lines
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).trimStart());
  const data = of("data");
  return { id: of("id").at(-1) ?? null, data: data.length === 0 ? null : data.join("\n") };
}
