import type { JSX } from "react";
import type { ResourceEntry } from "../../api/types.ts";
import { useResources } from "../../api/use-resources.ts";
import { TriggerBadges } from "../../parts/badge.tsx";
import { DataTable, type Column } from "../../parts/data-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";

const columns: readonly Column<ResourceEntry>[] = [
  { title: "Resource", render: ({ name }) => name },
  { title: "Model", render: ({ model }) => <code>{model}</code> },
  { title: "Webhook events", render: ({ triggers }) => <TriggerBadges triggers={triggers} /> },
];

export function ResourceList(): JSX.Element {
  const query = useResources();
  return (
    <Page title="Resources">
      <Card isFlush>
        <QueryView query={query}>
          {(resources) =>
            resources.length === 0 ? (
              <Empty icon="resources" title="No resource is served yet">
                Write a mapping file for a table, or have <code>svc-admin import</code> write them, then
                reload.
              </Empty>
            ) : (
              <DataTable
                label="Resources"
                columns={columns}
                rows={resources}
                rowKey={({ name }) => name}
                rowHref={({ name }) => `/resources/${name}`}
              />
            )
          }
        </QueryView>
      </Card>
    </Page>
  );
}
