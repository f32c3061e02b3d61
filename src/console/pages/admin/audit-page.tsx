import { useId, useState, type JSX } from "react";
import { Link } from "wouter";
import type { Json } from "../../api/types.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { JsonView, Value } from "../../parts/code.tsx";
import { DataTable, Pager } from "../../parts/data-table.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { useUrlState, type UrlState } from "../../parts/url-state.ts";
import { useList } from "../../parts/use-list.ts";
import type { AuditEntry } from "./types.ts";

const actions = ["user", "token", "webhook", "secret_key", "configuration", "reload", "migration", "record"];
const actors = ["user", "operator", "service", "database"];
const subjects = ["user", "token", "webhook", "secret_key", "configuration", "migration", "record"];

export function AuditPage(): JSX.Element {
  const url = useUrlState();
  const query = useList<AuditEntry>("/audit", url.search);
  const [shown, setShown] = useState<AuditEntry | null>(null);
  const isFiltered = ["action", "actor", "subject", "since", "until"].some((name) => url.search.has(name));
  return (
    <Page title="Audit trail">
      <Card isFlush note="Who changed users, tokens, webhooks, keys, tables and configuration.">
        <Filters url={url} />
        <QueryView query={query}>
          {(page) =>
            page.data.length === 0 ? (
              <Empty
                title="No entry fits"
                action={
                  isFiltered && <Button onPress={() => url.replace(new URLSearchParams())}>Show all</Button>
                }
              >
                <p>Each change of who may do what leaves an entry here.</p>
              </Empty>
            ) : (
              <>
                <DataTable
                  label="Audit trail"
                  rows={page.data}
                  rowKey={({ id }) => id}
                  isStale={query.isPlaceholderData}
                  columns={[
                    {
                      key: "time",
                      title: "Time",
                      render: (entry) => <Time value={entry.occurred_at} isExact />,
                    },
                    {
                      key: "action",
                      title: "Action",
                      render: ({ action }) => <Badge tone={toneOf(action)}>{action}</Badge>,
                    },
                    { key: "subject", title: "To what", render: (entry) => <Subject entry={entry} /> },
                    { key: "actor", title: "By", render: (entry) => <Actor entry={entry} /> },
                    { key: "source", title: "From", render: ({ source }) => <Value value={source} /> },
                    {
                      key: "more",
                      title: "",
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
                />
                <Pager page={page} url={url} />
              </>
            )
          }
        </QueryView>
      </Card>
      {shown !== null && <Details entry={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

function Filters({ url }: { readonly url: UrlState }): JSX.Element {
  const given = (name: string): string => url.search.get(name) ?? "";
  const set = (name: string, value: string): void => url.change({ [name]: value === "" ? null : value });
  const setTime = (name: string, value: string): void =>
    set(name, value === "" ? "" : new Date(value).toISOString());
  return (
    <search className="filters">
      <Choice
        label="Action"
        value={given("action")}
        onChange={(value) => set("action", value)}
        of={actions}
      />
      <Party label="By" value={given("actor")} onChange={(value) => set("actor", value)} of={actors} />
      <Party
        label="To what"
        value={given("subject")}
        onChange={(value) => set("subject", value)}
        of={subjects}
      />
      {["since", "until"].map((name) => (
        <label key={name} className="filter">
          <span>{name === "since" ? "Since" : "Until"}</span>
          <input
            className="input"
            type="datetime-local"
            value={localOf(given(name))}
            onChange={(event) => setTime(name, event.currentTarget.value)}
          />
        </label>
      ))}
    </search>
  );
}

interface Filter {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly of: readonly string[];
}

function Choice({ label, value, onChange, of }: Filter): JSX.Element {
  const id = useId();
  return (
    <div className="filter">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        className="input"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">any</option>
        {of.map((one) => (
          <option key={one} value={one}>
            {one.replace("_", " ")}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A kind, and perhaps the id of one: `user:7`. */
function Party({ label, value, onChange, of }: Filter): JSX.Element {
  const [kind = "", ...rest] = value.split(":");
  const id = rest.join(":");
  return (
    <>
      <Choice label={label} value={kind} onChange={onChange} of={of} />
      <label className="filter">
        <span>{label}, id</span>
        <input
          className="input"
          value={id}
          disabled={kind === ""}
          placeholder={kind === "" ? "choose a kind first" : "all"}
          onChange={(event) => {
            const text = event.currentTarget.value;
            onChange(text === "" ? kind : `${kind}:${text}`);
          }}
        />
      </label>
    </>
  );
}

/** Writes a time as a control for local times has it; "" for what is none. */
function localOf(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
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
      <span>
        <Link href={`/admin/users/${id}`}>user {id}</Link>
        {token !== null && <span className="muted">, token {token}</span>}
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
          facts={[
            ["Time", <Time key="time" value={entry.occurred_at} isExact />],
            ["To what", <Subject key="subject" entry={entry} />],
            ["By", <Actor key="actor" entry={entry} />],
            ["From", entry.source ?? "unknown"],
            ["Request", entry.request_id === null ? "none" : <code key="request">{entry.request_id}</code>],
          ]}
        />
        {names.length > 0 && (
          <DataTable
            label="Changes"
            rows={names}
            rowKey={(name) => name}
            columns={[
              { key: "name", title: "Column", render: (name) => <code>{name}</code> },
              { key: "before", title: "Before", render: (name) => <Value value={old[name]} /> },
              { key: "after", title: "After", render: (name) => <Value value={now[name]} /> },
            ]}
          />
        )}
        {Object.keys(rest).length > 0 && <JsonView value={rest} label="Details" />}
      </div>
      <div className="dialog-actions">
        <Button onPress={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function partsOf(value: Json | undefined): { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { readonly [key: string]: Json })
    : {};
}
