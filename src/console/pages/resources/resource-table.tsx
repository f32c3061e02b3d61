import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import type { JsonRecord } from "../../api/types.ts";
import { useRights } from "../../app/caller.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { SearchBox } from "../../parts/search-box.tsx";
import { Empty } from "../../parts/state.tsx";
import { listQuery, useList } from "../../parts/use-list.ts";
import { useUrlState } from "../../parts/url-state.ts";
import { ColumnsButton, Conditions, FilterButton } from "./filter-bar.tsx";
import { valueAt } from "./form-fields.ts";
import { idOf, recordPath, recordsPath } from "./record-key.ts";
import type { ResourceShape } from "./shape.ts";
import { ShownValue } from "./shown-value.tsx";
import "./resources.css";

const firstColumns = 8;

/** Shows the records of a resource. Filters, order, search, columns and page are in the URL. */
export function ResourceTable({ shape }: { readonly shape: ResourceShape }): JSX.Element {
  const url = useUrlState();
  const query = useList<JsonRecord>(recordsPath(shape.name));
  const rights = useRights();
  const rows = query.data?.data ?? [];
  const paths = shape.paths.length > 0 ? shape.paths : keysOf(rows);
  const asked = (url.search.get("columns") ?? "").split(",").filter((path) => paths.includes(path));
  const shown = asked.length > 0 ? asked : paths.slice(0, firstColumns);
  const mayCreate = shape.create !== null && rights.has(`${shape.name}:write`);
  const create = mayCreate && (
    <LinkButton kind="primary" icon="plus" href={`${recordsPath(shape.name)}/-/new`}>
      New record
    </LinkButton>
  );
  return (
    <Page title={shape.name} crumbs={[{ title: "Resources", href: "/resources" }]} actions={create}>
      <Card isFlush>
        <div className="row toolbar">
          {shape.isSearchable && (
            <SearchBox
              label={`Search ${shape.name}`}
              value={url.search.get("search") ?? ""}
              onSearch={(text) => url.change({ search: text === "" ? null : text }, "typing")}
            />
          )}
          {shape.filters.length > 0 && <FilterButton filters={shape.filters} />}
          <ColumnsButton paths={paths} shown={shown} />
          <Button kind="quiet" icon="refresh" aria-label="Load again" onPress={() => void query.refetch()} />
        </div>
        <Conditions />
        <ListTable
          label={shape.name}
          query={query}
          columns={shown.map((path) => columnOf(path, shape))}
          rowKey={(row) => idOf(row, shape) ?? JSON.stringify(row)}
          {...linkOf(shape, rows)}
          empty={
            <Empty icon="resources" title={`There are no ${shape.name} that you may see`} action={create}>
              {mayCreate ? "Create the first one." : "You may not create any."}
            </Empty>
          }
          total={<Total name={shape.name} search={url.search} />}
        />
      </Card>
    </Page>
  );
}

/** Counts the whole list in a separate request, because a page by cursor has no count. */
function Total({ name, search }: { readonly name: string; readonly search: URLSearchParams }): JSX.Element {
  const query = new URLSearchParams(listQuery(search));
  for (const parameter of ["cursor", "sort"]) query.delete(parameter);
  query.set("per_page", "1");
  query.set("count", "estimated");
  const { data } = useQuery<{ readonly total: number; readonly total_is_estimate?: boolean }>({
    queryKey: [recordsPath(name), `?${query}`],
  });
  if (data === undefined) return <span>…</span>;
  const about = data.total_is_estimate === true ? "about " : "";
  return (
    <span>
      {about}
      {data.total.toLocaleString("en")} {data.total === 1 ? "record" : "records"}
    </span>
  );
}

function linkOf(
  shape: ResourceShape,
  rows: readonly JsonRecord[],
): { readonly rowHref?: (row: JsonRecord) => string } {
  if (rows.some((row) => idOf(row, shape) === null)) return {};
  return { rowHref: (row) => recordPath(shape.name, idOf(row, shape) ?? "") };
}

function keysOf(rows: readonly JsonRecord[]): readonly string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))];
}

function columnOf(path: string, shape: ResourceShape): Column<JsonRecord> {
  const filter = shape.filters.find((one) => one.path === path);
  const isNumeric = filter?.isNumeric === true && !/(^|[._])id$/.test(path);
  return {
    title: path,
    isNumeric,
    ...(shape.sortable.has(path) && { sortBy: path }),
    render: (row) => <ShownValue value={valueAt(row, path)} isChoice={(filter?.choices.length ?? 0) > 0} />,
  };
}
