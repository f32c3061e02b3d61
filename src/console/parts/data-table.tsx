import type { JSX, ReactNode } from "react";
import { Link } from "wouter";
import type { CursorPage } from "../api/types.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { useUrlState } from "./url-state.ts";
import "./data-table.css";

export interface Column<Row> {
  /** Head of the column, unique in the table. */
  readonly title: string;
  readonly render: (row: Row) => ReactNode;
  /** Path by which the API sorts, as in the URL. Without it, the column cannot be sorted. */
  readonly sortBy?: string;
  readonly isNumeric?: boolean;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  readonly rowHref?: (row: Row) => string;
  /** Whether other rows are being loaded. */
  readonly isStale?: boolean;
}

/**
 * Shows rows. The API filters, sorts and pages, so no table library is needed. The first column is
 * a link to the row, and covers the whole row.
 */
export function DataTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  rowHref,
  isStale = false,
}: TableProps<Row>): JSX.Element {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls, by keys too.
    <div className={`table-frame${isStale ? " old" : ""}`} tabIndex={0} role="group" aria-label={label}>
      <table className="table" aria-busy={isStale}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.title} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className={rowHref === undefined ? undefined : "linked"}>
              {columns.map((column, index) => (
                <td key={column.title} className={column.isNumeric === true ? "numeric-cell" : undefined}>
                  {index === 0 && rowHref !== undefined ? (
                    <Link href={rowHref(row)} className="row-link">
                      {column.render(row)}
                    </Link>
                  ) : (
                    column.render(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head<Row>({ column: { title, sortBy, isNumeric } }: { readonly column: Column<Row> }): JSX.Element {
  const url = useUrlState();
  const className = isNumeric === true ? "numeric-cell" : undefined;
  if (sortBy === undefined)
    return (
      <th scope="col" className={className}>
        {title}
      </th>
    );
  const [first] = (url.search.get("sort") ?? "").split(",");
  const order = first === sortBy ? "ascending" : first === `-${sortBy}` ? "descending" : "none";
  const next = { none: sortBy, ascending: `-${sortBy}`, descending: null }[order];
  return (
    <th scope="col" className={className} aria-sort={order}>
      <button type="button" className="sort" onClick={() => url.change({ sort: next })}>
        {title}
        {order !== "none" && <Icon name={order === "ascending" ? "up" : "down"} size={12} />}
      </button>
    </th>
  );
}

const pageSizes: readonly string[] = ["25", "50", "100"];

/** Shows the buttons for the previous and the next page of a list by cursor. */
export function Pager({
  page,
  total,
}: {
  readonly page: CursorPage<unknown>;
  /** Text in the foot about the whole list, such as a count. */
  readonly total?: ReactNode;
}): JSX.Element {
  const url = useUrlState();
  const turn = (cursor: string | null, button: Element): void => {
    if (cursor === null) return;
    url.change({ cursor }, "page");
    goToListHead(button);
  };
  const asked = url.search.get("per_page") ?? "25";
  // Another size may exceed the service's limit, so the size of the answer is shown.
  const size = pageSizes.includes(asked) ? asked : String(page.per_page);
  return (
    <nav className="row pager" aria-label="Pages">
      <div className="row small muted">
        {total ?? (
          <span>
            {page.data.length} {page.data.length === 1 ? "row" : "rows"}
          </span>
        )}
        <label className="row">
          <span>per page</span>
          <select
            className="input pager-size"
            value={size}
            onChange={(event) => url.change({ per_page: event.currentTarget.value })}
          >
            {(pageSizes.includes(size) ? pageSizes : [size, ...pageSizes]).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <div className="row">
        <Button
          icon="left"
          isDisabled={page.prev_cursor === null}
          onPress={({ target }) => turn(page.prev_cursor, target)}
        >
          Previous
        </Button>
        <Button
          isDisabled={page.next_cursor === null}
          onPress={({ target }) => turn(page.next_cursor, target)}
        >
          Next
          <Icon name="right" />
        </Button>
      </div>
    </nav>
  );
}

/**
 * Scrolls from the foot of a list, where a page is turned, to its head. The next rows then start at
 * the top. Moves the focus too, so that Tab leads into the rows.
 */
export function goToListHead(foot: Element): void {
  const list = foot.closest<HTMLElement>(".card");
  list?.scrollIntoView();
  list?.querySelector<HTMLElement>(".table-frame")?.focus({ preventScroll: true });
}
