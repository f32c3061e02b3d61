import type { JSX } from "react";
import { api } from "../../api/client.ts";
import type { TestedAttempt, Webhook } from "../../api/webhook-types.ts";
import { useWrite } from "../../api/use-write.ts";
import { AttemptBadge, AttemptView } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { CodeBlock } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { ErrorLine } from "../../parts/state.tsx";

/** Sends a ping, and shows the answer beside it. */
export function TestPanel({
  webhook: { id, url, resource },
}: {
  readonly webhook: Pick<Webhook, "id" | "url" | "resource">;
}): JSX.Element {
  const test = useWrite({ mutationFn: () => api<TestedAttempt>(`/webhooks/${id}/test`, { method: "POST" }) });
  return (
    <Card
      title="Test delivery"
      note="A ping goes out now, signed like every delivery. It counts nowhere and is not repeated."
      actions={
        <Button icon="play" isBusy={test.isPending} onPress={() => test.mutate()}>
          {test.data === undefined ? "Send a ping" : "Send another"}
        </Button>
      }
    >
      <div className="stack" aria-live="polite">
        <ErrorLine error={test.error} />
        {test.data === undefined ? (
          <p className="muted">
            {test.isPending ? "Waiting for the receiver …" : "The answer of the receiver appears here."}
          </p>
        ) : (
          <div className="grid-2">
            <section className="stack" aria-label="What was sent">
              <h3>Sent</h3>
              <CodeBlock label="The ping" text={pingText({ url, resource }, test.data)} />
            </section>
            <section className="stack" aria-label="The answer">
              <div className="row">
                <h3>Answer</h3>
                <AttemptBadge attempt={test.data} />
              </div>
              <AttemptView attempt={test.data} />
            </section>
          </div>
        )}
      </div>
    </Card>
  );
}

function pingText(
  { url, resource }: Pick<Webhook, "url" | "resource">,
  { delivery_id: id }: TestedAttempt,
): string {
  const body = { event: "ping", resource, event_id: "…", delivery_id: id, data: {}, timestamp: "…" };
  return [
    `POST ${url}`,
    "content-type: application/json",
    `webhook-id: ${id}`,
    "webhook-timestamp: …",
    "webhook-signature: v1,…",
    "",
    JSON.stringify(body, null, 2),
  ].join("\n");
}
