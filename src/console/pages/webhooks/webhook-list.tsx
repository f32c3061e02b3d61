import type { JSX } from "react";
import { Link } from "wouter";
import { useNamesWithEvents } from "../../api/use-resources.ts";
import type { Webhook } from "../../api/webhook-types.ts";
import { useRights } from "../../app/caller.ts";
import { StatusBadge, TriggerBadges } from "../../parts/badge.tsx";
import { LinkButton } from "../../parts/button.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { optionsOf } from "../../parts/field.tsx";
import { FilterBar, SelectFilter, TextFilter } from "../../parts/filters.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { useList } from "../../parts/use-list.ts";
import { healthOf, receiverOf, resourceTitle } from "./health.ts";

const columns: readonly Column<Webhook>[] = [
  {
    title: "Receiver",
    sortBy: "url",
    render: ({ url, description }) => <Receiver url={url} description={description} />,
  },
  { title: "Health", render: (webhook) => <HealthCell webhook={webhook} /> },
  {
    title: "What",
    sortBy: "resource",
    render: ({ resource, events, filter }) => (
      <span className="row">
        {resourceTitle(resource)} <TriggerBadges triggers={events} />
        {filter !== null && <span className="muted small">filtered</span>}
      </span>
    ),
  },
  {
    title: "Last success",
    sortBy: "last_success_at",
    render: ({ last_success_at: time }) => <Time value={time} />,
  },
];

const userColumn: Column<Webhook> = {
  title: "User",
  sortBy: "user_id",
  isNumeric: true,
  render: ({ user_id: id }) => <Link href={`/admin/users/${id}`}>{id}</Link>,
};

/** Lists webhooks with their health at a glance. */
export function WebhookListPage(): JSX.Element {
  const { isAdmin, has } = useRights();
  const query = useList<Webhook>("/webhooks", 10_000);
  const isOfAll = useUrlState().search.has("user_id");
  const create = has("webhooks") && (
    <LinkButton href="/webhooks/new" kind="primary" icon="plus">
      New webhook
    </LinkButton>
  );
  return (
    <Page title="Webhooks" actions={create}>
      <Card isFlush>
        <FilterBar>
          <TextFilter label="URL contains" name="filter[url][contains]" />
          <SelectFilter
            label="Resource"
            name="filter[resource]"
            options={[
              ...optionsOf([...useNamesWithEvents(), "service"]),
              { value: "*", title: resourceTitle("*") },
            ]}
          />
          <SelectFilter
            label="State"
            name="filter[is_active]"
            options={[
              { value: "true", title: "active" },
              { value: "false", title: "off" },
            ]}
          />
          {isAdmin && (
            <SelectFilter
              label="Whose"
              name="user_id"
              anyTitle="mine"
              options={[{ value: "*", title: "everybody's" }]}
            />
          )}
        </FilterBar>
        <ListTable
          label="Webhooks"
          query={query}
          columns={isOfAll ? [...columns, userColumn] : columns}
          rowKey={({ id }) => id}
          rowHref={({ id }) => `/webhooks/${id}`}
          empty={
            <Empty icon="webhooks" title="No webhooks yet" action={create}>
              A webhook sends what happens to your records to a URL of yours, signed, until it arrives.
            </Empty>
          }
        />
      </Card>
    </Page>
  );
}

function Receiver({ url, description }: Pick<Webhook, "url" | "description">): JSX.Element {
  const { host, path } = receiverOf(url);
  return (
    <span className="receiver">
      <span>
        {host}
        <span className="muted">{path}</span>
      </span>
      {description !== null && <span className="muted small">{description}</span>}
    </span>
  );
}

function HealthCell({ webhook }: { readonly webhook: Webhook }): JSX.Element {
  const { status, since, sentence } = healthOf(webhook);
  return (
    <span className="row" title={sentence}>
      <StatusBadge status={status} />
      {status !== "healthy" && since !== null && (
        <span className="muted small">
          <Time value={since} />
        </span>
      )}
    </span>
  );
}
