import type { UseQueryResult } from "@tanstack/react-query";
import type { JSX, ReactNode } from "react";
import { DataTable, type TableProps } from "./data-table.tsx";
import { QueryView } from "./state.tsx";

/** A page of a list; only one by cursor may have no rows before the end of the list. */
interface ListPage<Row> {
  readonly data: readonly Row[];
  readonly next_cursor?: string | null;
}

/** Shows the page of a list that a query reads, and below it what turns its pages. */
export function ListTable<Row, Page extends ListPage<Row>>({
  query,
  lines,
  empty,
  children,
  ...table
}: Omit<TableProps<Row>, "rows" | "isStale"> & {
  readonly query: UseQueryResult<Page & ListPage<Row>>;
  readonly lines?: number;
  /** Shown instead of a list without rows. */
  readonly empty: ReactNode;
  readonly children: (page: Page) => ReactNode;
}): JSX.Element {
  return (
    <QueryView query={query} lines={lines} url={table.url}>
      {(page) =>
        page.data.length === 0 && (page.next_cursor ?? null) === null ? (
          empty
        ) : (
          <>
            <DataTable {...table} rows={page.data} isStale={query.isPlaceholderData} />
            {children(page)}
          </>
        )
      }
    </QueryView>
  );
}
