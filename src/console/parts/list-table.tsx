import type { UseQueryResult } from "@tanstack/react-query";
import type { JSX, ReactNode } from "react";
import type { CursorPage } from "../api/types.ts";
import { Button } from "./button.tsx";
import { DataTable, Pager, type TableProps } from "./data-table.tsx";
import { Empty, QueryView } from "./state.tsx";
import { useUrlState } from "./url-state.ts";

/** Shows the page of a list that a query reads, with its pager. */
export function ListTable<Row>({
  query,
  empty,
  total,
  ...table
}: Omit<TableProps<Row>, "rows" | "isStale"> & {
  readonly query: UseQueryResult<CursorPage<Row>>;
  /** Shown instead of an empty list without filters. */
  readonly empty: ReactNode;
  /** Text in the foot about the whole list, such as a count. */
  readonly total?: ReactNode;
}): JSX.Element {
  return (
    <QueryView query={query}>
      {(page) =>
        page.data.length > 0 || page.next_cursor !== null ? (
          <>
            <DataTable {...table} rows={page.data} isStale={query.isPlaceholderData} />
            <Pager page={page} total={total} />
          </>
        ) : (
          <NoRows empty={empty} />
        )
      }
    </QueryView>
  );
}

/** Shown instead of an empty list: a link out of its page or filters, or the first step. */
export function NoRows({ empty }: { readonly empty: ReactNode }): ReactNode {
  const { search, filters, clear } = useUrlState();
  if (search.has("cursor"))
    return (
      <Empty
        title="There is nothing on this page"
        action={
          <Button icon="up" onPress={() => clear(["cursor"])}>
            To the first page
          </Button>
        }
      />
    );
  if (filters.length === 0) return empty;
  return (
    <Empty title="Nothing matches" action={<Button onPress={() => clear(filters)}>Show all</Button>}>
      Change the filters, or clear them.
    </Empty>
  );
}
