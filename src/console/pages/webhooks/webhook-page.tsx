import { useState, type JSX } from "react";
import { Link } from "wouter";
import type { Webhook } from "../../api/webhook-types.ts";
import { Outcome, StatusBadge, TriggerBadges } from "../../parts/badge.tsx";
import { JsonView } from "../../parts/code.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { deliveryColumns, receiverColumn } from "../deliveries/delivery-columns.tsx";
import { NewestDeliveries } from "../deliveries/newest-deliveries.tsx";
import { EditWebhook } from "./edit-webhook.tsx";
import { healthOf, resourceTitle } from "./health.ts";
import { TestPanel } from "./test-panel.tsx";
import { useWebhook, type FoundWebhook } from "./use-webhook.ts";
import { WebhookActions } from "./webhook-actions.tsx";

/** Shows one webhook: its health, its settings, its last deliveries, and its actions. */
export function WebhookPage({ id }: { readonly id: string }): JSX.Element {
  const query = useWebhook(id);
  const [isEdited, setEdited] = useState(false);
  const found = query.data;
  const crumbs = [{ title: "Webhooks", href: "/webhooks" }];
  return (
    <Page
      title={`Webhook ${id}`}
      crumbs={crumbs}
      status={found && <StatusBadge status={healthOf(found.webhook).status} />}
      actions={found && <WebhookActions found={found} onEdit={() => setEdited(true)} />}
    >
      <QueryView query={query}>
        {(current) => (
          <>
            {isEdited ? (
              <EditWebhook webhook={current.webhook} onDone={() => setEdited(false)} />
            ) : (
              <Summary found={current} />
            )}
            {current.isOwn && <TestPanel webhook={current.webhook} />}
            <NewestDeliveries
              title="Last deliveries"
              filter={`webhook_id=${current.webhook.id}`}
              most={10}
              columns={deliveryColumns.filter((one) => one !== receiverColumn)}
              empty={
                <Empty icon="deliveries" title="No deliveries yet">
                  The next event that matches creates one. A ping shows now whether the receiver answers.
                </Empty>
              }
            />
          </>
        )}
      </QueryView>
    </Page>
  );
}

function Summary({ found: { webhook, isOwn } }: { readonly found: FoundWebhook }): JSX.Element {
  const health = healthOf(webhook);
  const headers = Object.keys(webhook.headers);
  return (
    <Card>
      <div className="stack">
        <Outcome status={health.status}>
          {health.sentence}
          {health.since !== null && (
            <>
              {" "}
              <Time value={health.since} />.
            </>
          )}
        </Outcome>
        {!isOwn && (
          <p className="muted">
            This webhook belongs to user {webhook.user_id}: only that user tests, changes and deletes it.
          </p>
        )}
        {webhook.description !== null && (
          <p className="break" dir="auto">
            {webhook.description}
          </p>
        )}
        <Facts
          facts={{
            ...(!isOwn && {
              User: <Link href={`/admin/users/${webhook.user_id}`}>user {webhook.user_id}</Link>,
            }),
            URL: <span className="mono">{webhook.url}</span>,
            Resource: resourceTitle(webhook.resource),
            Events: <TriggerBadges triggers={webhook.events} />,
            Secret: <code>{webhook.masked_secret}</code>,
            ...previousSecret(webhook),
            Headers: headers.length === 0 ? "none" : headers.join(", "),
            "Rate limit": webhook.rate_limit === null ? "none" : `${webhook.rate_limit} a second`,
            "Last success": <Time value={webhook.last_success_at} />,
            "Last attempt": <Time value={webhook.last_attempt_at} />,
            Created: <Time value={webhook.created_at} />,
          }}
        />
        {webhook.filter !== null && <JsonView label="Filter" value={webhook.filter} />}
      </div>
    </Card>
  );
}

function previousSecret({ previous_secret_until: until }: Webhook): Readonly<Record<string, JSX.Element>> {
  if (until === null || Date.parse(until) < Date.now()) return {};
  return {
    "Secret before it": (
      <span>
        signs too, until <Time value={until} isExact />
      </span>
    ),
  };
}
