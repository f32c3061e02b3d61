import { useRef, useState, type JSX, type SubmitEvent } from "react";
import { Link } from "wouter";
import { faultsOf, isStatus } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import type { Replay, ReplayCount, Webhook } from "../../api/webhook-types.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useWrite } from "../../api/use-write.ts";
import { useNamesWithEvents } from "../../api/use-resources.ts";
import { goToBadInput } from "../../parts/bad-input.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { ChecksField, optionsOf, SelectField, TextField } from "../../parts/field.tsx";
import { fromLocalTime, toLocalTime } from "../../parts/local-time.ts";
import { useWayOn } from "../../parts/leaving.ts";
import { Card, Page } from "../../parts/page.tsx";
import { ErrorLine, messageOf, QueryView } from "../../parts/state.tsx";
import { receiverOf } from "./health.ts";
import { useWebhook } from "./use-webhook.ts";

const kinds = [
  { value: "failed", title: "failed", hint: "Their attempts were spent." },
  { value: "never", title: "never created", hint: "From before the webhook, or while it was off for long." },
  { value: "cancelled", title: "cancelled", hint: "Discarded, or held for too long." },
  { value: "delivered", title: "delivered", hint: "The receiver took them, and has lost them since." },
];

const spans = [
  { title: "last hour", hours: 1 },
  { title: "last day", hours: 24 },
  { title: "last week", hours: 168 },
];

interface Asked {
  readonly since: string;
  readonly until: string;
  readonly status: readonly string[];
  readonly events: readonly string[];
  /** Resource; blank for every resource. */
  readonly resource: string;
}

/** Properties of each part of the form. */
interface PartProps {
  readonly asked: Asked;
  readonly error: unknown;
  readonly onChange: (changes: Partial<Asked>) => void;
}

/** Asks for the events to deliver again, and counts them first. */
export function ReplayFormPage({ id }: { readonly id: string }): JSX.Element {
  const query = useWebhook(id);
  return (
    <Page
      title="Replay"
      crumbs={[
        { title: "Webhooks", href: "/webhooks" },
        { title: `Webhook ${id}`, href: `/webhooks/${id}` },
      ]}
    >
      <QueryView query={query}>{({ webhook }) => <ReplayForm webhook={webhook} />}</QueryView>
    </Page>
  );
}

function ReplayForm({ webhook }: { readonly webhook: Webhook }): JSX.Element {
  const goOn = useWayOn();
  const post = usePostOnce();
  const [asked, setAsked] = useState<Asked>(() => ({
    since: hoursAgo(24),
    until: "",
    status: ["failed"],
    events: webhook.events,
    resource: "",
  }));
  const form = useRef<HTMLFormElement>(null);
  const path = `/webhooks/${webhook.id}/replay`;
  const count = useWrite({
    mutationFn: () => api<ReplayCount>(path, { method: "POST", body: { ...bodyOf(asked), dry_run: true } }),
  });
  const start = useWrite({
    mutationFn: () => post<Replay>(path, bodyOf(asked)),
    onSuccess: (replay) => goOn(`${path}/${replay.id}`),
  });
  const change = (changes: Partial<Asked>): void => {
    setAsked((before) => ({ ...before, ...changes }));
    // The count and the error were for other values of the form.
    count.reset();
    start.reset();
  };
  const error = start.error ?? count.error;
  const send = (what: typeof count | typeof start): void => {
    if (form.current === null || !goToBadInput(form.current)) what.mutate();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    send(count);
  };
  return (
    <Card
      title={`To ${receiverOf(webhook.url).host}`}
      note="Events are delivered again under new ids, in their order, behind what is new."
    >
      <form ref={form} className="stack form" noValidate onSubmit={submit}>
        {!webhook.is_active && (
          <ErrorLine error={new Error("The webhook is off: resume it first, and what is held goes out.")} />
        )}
        <ReplayFields asked={asked} error={error} onChange={change} />
        {webhook.resource === "*" && <ResourceChoice asked={asked} error={error} onChange={change} />}
        {webhook.events.length > 1 && (
          <ChecksField
            label="Which events"
            options={webhook.events.map((value) => ({ value }))}
            chosen={asked.events}
            onChange={(events) => change({ events })}
          />
        )}
        <ReplayError error={error} webhookId={webhook.id} />
        {count.data !== undefined && <Counted count={count.data} />}
        <div className="row form-actions">
          <Button
            type="submit"
            kind={count.data === undefined ? "primary" : "plain"}
            isBusy={count.isPending}
            isDisabled={!webhook.is_active || isIncomplete(asked)}
          >
            Count them first
          </Button>
          {count.data !== undefined && count.data.count > 0 && (
            <Button kind="primary" icon="refresh" isBusy={start.isPending} onPress={() => send(start)}>
              {`Deliver ${about(count.data)} again`}
            </Button>
          )}
          <LinkButton href={`/webhooks/${webhook.id}`} kind="quiet">
            Cancel
          </LinkButton>
        </div>
      </form>
    </Card>
  );
}

function isIncomplete({ since, status, events }: Asked): boolean {
  return since === "" || status.length === 0 || events.length === 0;
}

function ReplayFields({ asked, error, onChange }: PartProps): JSX.Element {
  return (
    <>
      <div className="row">
        {spans.map(({ title, hours }) => (
          <Button key={title} onPress={() => onChange({ since: hoursAgo(hours), until: "" })}>
            {title}
          </Button>
        ))}
      </div>
      <TextField
        label="Events since"
        isRequired
        type="datetime-local"
        errors={faultsOf(error, "since")}
        value={asked.since}
        onChange={(since) => onChange({ since })}
      />
      <TextField
        label="Until"
        type="datetime-local"
        hint="Empty: until now."
        errors={faultsOf(error, "until")}
        value={asked.until}
        onChange={(until) => onChange({ until })}
      />
      <ChecksField
        label="Status of the newest delivery"
        options={kinds}
        chosen={asked.status}
        errors={faultsOf(error, "status")}
        onChange={(status) => onChange({ status })}
      />
    </>
  );
}

function ResourceChoice({ asked, error, onChange }: PartProps): JSX.Element {
  return (
    <SelectField
      label="Of the resource"
      errors={faultsOf(error, "resource")}
      value={asked.resource}
      options={[{ value: "", title: "every one" }, ...optionsOf(useNamesWithEvents())]}
      onChange={(resource) => onChange({ resource })}
    />
  );
}

/** Shows an error with a link to the unfinished replay that the message names. */
function ReplayError({
  error,
  webhookId,
}: {
  readonly error: unknown;
  readonly webhookId: number;
}): JSX.Element | null {
  const [, other] = isStatus(error, 409) ? (/replay (\d+)/.exec(messageOf(error)) ?? []) : [];
  return (
    <>
      <ErrorLine error={error} />
      {other !== undefined && <Link href={`/webhooks/${webhookId}/replay/${other}`}>To replay {other}</Link>}
    </>
  );
}

function Counted({ count }: { readonly count: ReplayCount }): JSX.Element {
  const [first] = count.event_ids;
  if (count.count === 0)
    return (
      <p role="status">No event matches. Nothing would be delivered; choose a longer time or other kinds.</p>
    );
  return (
    <div>
      <p role="status">
        <strong>{about(count)}</strong> would be delivered again.
      </p>
      {first !== undefined && <Link href={`/events?before=${first + 1}`}>See the first of them</Link>}
    </div>
  );
}

function about({ count, is_estimate: isEstimate }: ReplayCount): string {
  return `${isEstimate ? "about " : ""}${count.toLocaleString("en")} ${count === 1 ? "event" : "events"}`;
}

function bodyOf({ since, until, status, events, resource }: Asked): Readonly<Record<string, unknown>> {
  return {
    since: fromLocalTime(since),
    ...(until === "" ? {} : { until: fromLocalTime(until) }),
    status,
    events,
    ...(resource === "" ? {} : { resource }),
  };
}

function hoursAgo(hours: number): string {
  return toLocalTime(new Date(Date.now() - hours * 3_600_000).toISOString())?.slice(0, 16) ?? "";
}
