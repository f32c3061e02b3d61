import { useQuery } from "@tanstack/react-query";
import type { JSX, ReactNode } from "react";
import { Link } from "wouter";
import { every } from "../../api/every.ts";
import { refresh } from "../../api/query-client.ts";
import type { Delivery } from "../../api/types.ts";
import type { DeliveryDetail } from "../../api/webhook-types.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useWrite } from "../../api/use-write.ts";
import { headerLines } from "../../parts/attempt.tsx";
import { Outcome, StatusBadge, TriggerBadge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { CodeBlock, CopyButton } from "../../parts/code.tsx";
import { useWayOn } from "../../parts/leaving.ts";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { ErrorLine, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toast.tsx";
import { curlOf } from "./curl.ts";
import { storyOf } from "./story.ts";
import { TimeLine } from "./time-line.tsx";

/** Shows one delivery as a time line, with its request and its actions. */
export function DeliveryPage({ id }: { readonly id: string }): JSX.Element {
  const query = useQuery<DeliveryDetail>({
    queryKey: ["/webhook-deliveries", `/${encodeURIComponent(id)}`],
    refetchInterval: every(2_000, hasEnded),
  });
  const delivery = query.data;
  return (
    <Page
      title={`Delivery ${id}`}
      crumbs={[{ title: "Deliveries", href: "/deliveries" }]}
      status={delivery && <StatusBadge status={delivery.status} />}
    >
      <QueryView query={query}>
        {(current) => (
          <>
            <Summary delivery={current} />
            <Card title="Time line">
              <TimeLine delivery={current} />
            </Card>
            <Request delivery={current} />
          </>
        )}
      </QueryView>
    </Page>
  );
}

function hasEnded(delivery: Delivery | undefined): boolean {
  return delivery === undefined || ["delivered", "failed", "cancelled"].includes(delivery.status);
}

function Summary({ delivery }: { readonly delivery: DeliveryDetail }): JSX.Element {
  const { resource, record_id: record, event, event_uuid: uuid, subscription_id: webhook } = delivery;
  return (
    <Card actions={<Actions delivery={delivery} />} title="Outcome">
      <div className="stack">
        <Outcome status={delivery.status}>{storyOf(delivery)}</Outcome>
        <Facts
          facts={{
            Event: (
              <span className="row">
                <TriggerBadge trigger={event} />
                <Link href={`/events/${uuid}`}>
                  {resource} {record}
                </Link>
              </span>
            ),
            Happened: <Time value={delivery.occurred_at} isExact />,
            Webhook: <Link href={`/webhooks/${webhook}`}>{webhook}</Link>,
            To: <span className="mono">{delivery.url}</span>,
            Attempts: `${delivery.attempt} of ${delivery.max_attempts}`,
            UUID: <code>{delivery.uuid}</code>,
            ...(delivery.trigger_kind === "manual" && madeFrom(delivery)),
          }}
        />
      </div>
    </Card>
  );
}

function madeFrom({ parent_delivery_id: parent }: DeliveryDetail): Readonly<Record<string, ReactNode>> {
  if (parent === null) return { "Created by": "a replay" };
  return { "Created from": <Link href={`/deliveries/${parent}`}>delivery {parent}</Link> };
}

function Actions({ delivery }: { readonly delivery: DeliveryDetail }): JSX.Element {
  const goOn = useWayOn();
  const post = usePostOnce();
  const retry = useWrite({
    mutationFn: () => post<Delivery>(`/webhook-deliveries/${delivery.id}/retry`, undefined),
    onSuccess: async ({ id }) => {
      if (id !== delivery.id) {
        toast(`Delivery ${id} goes out now.`);
        goOn(`/deliveries/${id}`);
      } else toast("Its next attempt is made now.");
      await refresh("/webhook-deliveries");
    },
  });
  const label = { retrying: "Retry now", failed: "Retry", delivered: "Resend", cancelled: "Resend" }[
    delivery.status
  ];
  return (
    <>
      <ErrorLine error={retry.error} />
      {delivery.request.body !== null && (
        <CopyButton label="Copy as curl" isQuiet={false} text={curlOf(delivery)} />
      )}
      {label !== undefined && (
        <Button kind="primary" icon="refresh" isBusy={retry.isPending} onPress={() => retry.mutate()}>
          {label}
        </Button>
      )}
    </>
  );
}

function Request({ delivery: { request } }: { readonly delivery: DeliveryDetail }): JSX.Element {
  return (
    <Card title="What every attempt sends" note="Signatures and times differ, and are not kept.">
      <div className="grid-2">
        <CodeBlock label="Headers of the request" text={headerLines(request.headers)} />
        {request.body === null ? (
          <p className="muted">The body is not shown: the record was erased, or you may not read it now.</p>
        ) : (
          <CodeBlock label="Body of the request" text={indented(request.body)} />
        )}
      </div>
    </Card>
  );
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
