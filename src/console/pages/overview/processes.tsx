import type { JSX } from "react";
import type { ProcessState } from "../../api/types.ts";
import { Badge } from "../../parts/badge.tsx";
import { DataTable, type Column } from "../../parts/data-table.tsx";
import { Card } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";

/** Lists the running processes, for admins, and highlights differences between them. */
export function Processes({ processes }: { readonly processes: readonly ProcessState[] }): JSX.Element {
  const versions = new Set(processes.map(({ version }) => version));
  const configurations = new Set(processes.map(({ configuration }) => configuration));
  const columns: readonly Column<ProcessState>[] = [
    { title: "Program", render: ({ program }) => program },
    { title: "Host", render: ({ host, pid }) => `${host ?? "–"}${pid === null ? "" : ` (${pid})`}` },
    {
      title: "Version",
      render: ({ version }) =>
        versions.size > 1 ? <Badge tone="warn">{version ?? "unknown"}</Badge> : version,
    },
    {
      title: "Configuration",
      render: ({ configuration }) => {
        const short = <code title={configuration}>{configuration.slice(0, 12)}</code>;
        return configurations.size > 1 ? <Badge tone="warn">{short}</Badge> : short;
      },
    },
    {
      title: "Reload",
      render: ({ reload_faults }) =>
        reload_faults.length === 0 ? (
          <Badge tone="good">in effect</Badge>
        ) : (
          <>
            <Badge tone="bad">
              {reload_faults.length === 1 ? "1 fault" : `${reload_faults.length} faults`}
            </Badge>
            {reload_faults.map((fault) => (
              <p key={fault} className="wrapped">
                {fault}
              </p>
            ))}
          </>
        ),
    },
    { title: "Started", render: ({ started_at }) => <Time value={started_at} /> },
    { title: "Last seen", render: ({ seen_at }) => <Time value={seen_at} /> },
  ];
  return (
    <Card title="Processes" isFlush>
      <DataTable label="Processes" columns={columns} rows={processes} rowKey={({ id }) => id} />
    </Card>
  );
}
