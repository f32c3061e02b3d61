import type { JSX } from "react";
import { Route, Switch } from "wouter";
import { NoPage } from "../../parts/no-page.tsx";
import { NewWebhookPage } from "./new-webhook.tsx";
import { ReplayFormPage } from "./replay-form.tsx";
import { ReplayProgressPage } from "./replay-progress.tsx";
import { WebhookListPage } from "./webhook-list.tsx";
import { WebhookPage } from "./webhook-page.tsx";
import "./webhooks.css";

/** Shows the section of webhooks: the list, a new webhook, and a single webhook. */
export function WebhooksPage(): JSX.Element {
  return (
    <Switch>
      <Route path="/webhooks" component={WebhookListPage} />
      <Route path="/webhooks/new" component={NewWebhookPage} />
      <Route path="/webhooks/:id">{({ id }) => <WebhookPage key={id} id={id} />}</Route>
      <Route path="/webhooks/:id/replay">{({ id }) => <ReplayFormPage key={id} id={id} />}</Route>
      <Route path="/webhooks/:id/replay/:replay">
        {({ id, replay }) => <ReplayProgressPage key={replay} id={id} replay={replay} />}
      </Route>
      <Route component={NoPage} />
    </Switch>
  );
}
