import { useState, type JSX } from "react";
import { Link } from "wouter";
import type { Json, JsonRecord } from "../../api/types.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { JsonView, Value } from "../../parts/code.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import type { Option } from "../../parts/field.tsx";
import { FilterBar, SelectFilter, TimeFilter, TypedFilter } from "../../parts/filters.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { useList } from "../../parts/use-list.ts";
import type { AuditEntry } from "./types.ts";

const actions = ["user", "token", "webhook", "secret_key", "configuration", "reload", "migration", "record"];
const actors = ["user", "operator", "service", "database"];
const subjects = ["user", "token", "webhook", "secret_key", "configuration", "migration", "record"];

export function AuditPage(): JSX.Element {
  const query = useList<AuditEntry>("/audit");
  const [shown, setShown] = useState<AuditEntry | null>(null);
  return (
    <Page title="Audit trail">
      <Card isFlush title="Who changed what" note="Users, tokens, webhooks, keys, tables and configuration.">
        <FilterBar>
          <SelectFilter label="Action" name="action" options={optionsOf(actions)} />
          <Party label="Actor" name="actor" kinds={actors} />
          <Party label="Subject" name="subject" kinds={subjects} />
          <TimeFilter label="Since" name="since" />
          <TimeFilter label="Until" name="until" />
        </FilterBar>
        <ListTable
          label="Audit trail"
          query={query}
          rowKey={({ id }) => id}
          columns={[
            { title: "Time", render: (entry) => <Time value={entry.occurred_at} isExact /> },
            { title: "Action", render: ({ action }) => <Badge tone={toneOf(action)}>{action}</Badge> },
            { title: "Subject", render: (entry) => <Subject entry={entry} /> },
            { title: "Actor", render: (entry) => <Actor entry={entry} /> },
            { title: "From", render: ({ source }) => <Value value={source} /> },
            {
              title: "Actions",
              render: (entry) => (
                <Button
                  kind="quiet"
                  aria-label={`Details of entry ${entry.id}`}
                  onPress={() => setShown(entry)}
                >
                  Details
                </Button>
              ),
            },
          ]}
          empty={<Empty title="No entry yet">Each change of who may do what leaves an entry here.</Empty>}
        />
      </Card>
      {shown !== null && <Details entry={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

/** Filter by an actor or subject: a kind, optionally with an id, such as `user:7`. */
function Party({
  label,
  name,
  kinds,
}: {
  readonly label: string;
  readonly name: string;
  readonly kinds: readonly string[];
}): JSX.Element {
  const url = useUrlState();
  const [kind = "", ...rest] = (url.search.get(name) ?? "").split(":");
  return (
    <>
      <SelectFilter label={label} name={name} given={kind} options={optionsOf(kinds)} />
      <TypedFilter
        label={`${label} id`}
        given={rest.join(":")}
        disabled={kind === ""}
        placeholder={kind === "" ? "choose a kind" : "all"}
        onApply={(id) => url.change({ [name]: id === "" ? kind : `${kind}:${id}` })}
      />
    </>
  );
}

function optionsOf(names: readonly string[]): readonly Option[] {
  return names.map((name) => ({ value: name, title: name.replace("_", " ") }));
}

function toneOf(action: string): "good" | "bad" | "neutral" | "warn" {
  if (/created|loaded|enabled/.test(action)) return "good";
  if (/deleted|revoked|disabled|erased/.test(action)) return "bad";
  return action.endsWith("refused") ? "warn" : "neutral";
}

const pages: Readonly<Record<string, string>> = { user: "/admin/users/", webhook: "/webhooks/" };

function Subject({
  entry: { subject_kind: kind, subject_id: id },
}: {
  readonly entry: AuditEntry;
}): JSX.Element {
  const text = `${kind.replace("_", " ")}${id === null ? "" : ` ${id}`}`;
  const page = pages[kind];
  return page === undefined || id === null ? (
    <span className="break">{text}</span>
  ) : (
    <Link href={page + encodeURIComponent(id)}>{text}</Link>
  );
}

function Actor({ entry }: { readonly entry: AuditEntry }): JSX.Element {
  const { actor_kind: kind, actor_id: id, actor_name: name, token_id: token } = entry;
  if (kind === "user" && id !== null)
    return (
      <span className="row">
        <Link href={`/admin/users/${id}`}>user {id}</Link>
        {token !== null && <span className="muted">token {token}</span>}
      </span>
    );
  return (
    <span className="break">
      {kind} {name}
    </span>
  );
}

function Details({
  entry,
  onClose,
}: {
  readonly entry: AuditEntry;
  readonly onClose: () => void;
}): JSX.Element {
  const { before, after, ...rest } = entry.details;
  const [old, now] = [partsOf(before), partsOf(after)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  return (
    <Dialog title={entry.action} isWide onClose={onClose}>
      <div className="stack">
        <Facts
          facts={{
            Time: <Time value={entry.occurred_at} isExact />,
            Subject: <Subject entry={entry} />,
            Actor: <Actor entry={entry} />,
            From: entry.source ?? "unknown",
            Request: entry.request_id === null ? "none" : <code>{entry.request_id}</code>,
          }}
        />
        {names.length > 0 && (
          <DataTable
            label="Changes"
            rows={names}
            rowKey={(name) => name}
            columns={[
              { title: "Column", render: (name) => <code>{name}</code> },
              { title: "Before", render: (name) => <Value value={old[name]} /> },
              { title: "After", render: (name) => <Value value={now[name]} /> },
            ]}
          />
        )}
        {Object.keys(rest).length > 0 && <JsonView value={rest} label="Details" />}
      </div>
      <div className="row dialog-actions">
        <Button onPress={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function partsOf(value: Json | undefined): JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}
