import type { JSX } from "react";
import type { Delivery } from "../../api/types.ts";
import { useResources } from "../../api/use-resources.ts";
import { LinkButton } from "../../parts/button.tsx";
import { optionsOf } from "../../parts/field.tsx";
import { ChoiceFilter, FilterBar, SelectFilter, TextFilter, TimeFilter } from "../../parts/filters.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty } from "../../parts/state.tsx";
import { useList } from "../../parts/use-list.ts";
import { deliveryColumns } from "./delivery-columns.tsx";

const statuses = ["pending", "retrying", "held", "delivered", "failed", "cancelled"];
const rareFilters = ["webhook_id", "record_id", "event_id", "url", "created_after", "created_before"];

/** Lists deliveries, the newest first. */
export function DeliveryListPage(): JSX.Element {
  const query = useList<Delivery>("/webhook-deliveries", 10_000);
  return (
    <Page title="Deliveries">
      <Card isFlush>
        <Filters />
        <ListTable
          label="Deliveries"
          query={query}
          columns={deliveryColumns}
          rowKey={({ id }) => id}
          rowHref={({ id }) => `/deliveries/${id}`}
          empty={
            <Empty
              icon="deliveries"
              title="No deliveries yet"
              action={
                <LinkButton href="/webhooks/new" kind="primary" icon="plus">
                  New webhook
                </LinkButton>
              }
            >
              Each event that matches a webhook creates one. Create a webhook, then change a record.
            </Empty>
          }
        />
      </Card>
    </Page>
  );
}

function Filters(): JSX.Element {
  const { data } = useResources();
  return (
    <FilterBar
      moreNames={rareFilters}
      more={
        <>
          <TextFilter label="Record" name="record_id" placeholder="its id" />
          <TextFilter label="Webhook" name="webhook_id" placeholder="its number" />
          <TextFilter label="URL is" name="url" />
          <TimeFilter label="Created after" name="created_after" />
          <TimeFilter label="Created before" name="created_before" />
        </>
      }
    >
      <ChoiceFilter label="Status" name="status" options={statuses} />
      <SelectFilter
        label="Resource"
        name="resource"
        options={optionsOf([...new Set([...(data ?? []).map(({ name }) => name), "service"])])}
      />
      <SelectFilter label="Event" name="event" options={[...eventOptions, ...operational]} />
    </FilterBar>
  );
}

/** Options of the filter by event in lists of record changes. */
export const eventOptions = [
  { value: "on_create", title: "created" },
  { value: "on_update", title: "updated" },
  { value: "on_delete", title: "deleted" },
];

const operational = optionsOf(["webhook.failing", "webhook.disabled", "delivery.failed"]);
