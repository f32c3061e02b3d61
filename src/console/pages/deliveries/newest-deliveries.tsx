import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { every } from "../../api/every.ts";
import type { CursorPage, Delivery } from "../../api/types.ts";
import { LinkButton } from "../../parts/button.tsx";
import { DataTable, type Column } from "../../parts/data-table.tsx";
import { Card } from "../../parts/page.tsx";
import { QueryView } from "../../parts/state.tsx";

/** Shows the newest deliveries of an event or a webhook. */
export function NewestDeliveries({
  title,
  filter,
  most,
  columns,
  empty,
}: {
  readonly title: string;
  /** Filter of the list of deliveries: `event_id=7`. */
  readonly filter: string;
  readonly most: number;
  readonly columns: readonly Column<Delivery>[];
  /** Shown while there are no deliveries. */
  readonly empty: JSX.Element;
}): JSX.Element {
  const query = useQuery<CursorPage<Delivery>>({
    queryKey: ["/webhook-deliveries", `?${filter}&cursor=&per_page=${most}`],
    refetchInterval: every(5_000),
  });
  return (
    <Card
      title={title}
      isFlush
      actions={
        <LinkButton href={`/deliveries?${filter}`} kind="quiet" icon="right">
          All of them
        </LinkButton>
      }
    >
      <QueryView query={query}>
        {({ data, next_cursor: older }) =>
          data.length === 0 ? (
            empty
          ) : (
            <>
              <DataTable
                label={title}
                columns={columns}
                rows={data}
                rowKey={({ id }) => id}
                rowHref={({ id }) => `/deliveries/${id}`}
              />
              {older !== null && (
                <p className="row pager small muted">Only the newest {data.length} are shown.</p>
              )}
            </>
          )
        }
      </QueryView>
    </Card>
  );
}
