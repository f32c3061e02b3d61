import { useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { api } from "../../api/client.ts";
import { refresh } from "../../api/query-client.ts";
import type { Json } from "../../api/types.ts";
import { useWrite } from "../../api/use-write.ts";
import { useStats } from "../../app/caller.ts";
import { Badge, TriggerBadges } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Value } from "../../parts/code.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { SearchBox } from "../../parts/search-box.tsx";
import { Empty, ErrorLine, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { Processes } from "../overview/processes.tsx";
import { ReloadOutcome } from "./reload-outcome.tsx";
import type { ConfigurationInEffect, ReloadAnswer, SettingInEffect } from "./types.ts";
import "../../parts/filters.css";

export function ConfigurationPage(): JSX.Element {
  const query = useQuery<ConfigurationInEffect>({ queryKey: ["/configuration"] });
  const [answer, setAnswer] = useState<ReloadAnswer | null>(null);
  const reload = useWrite({
    mutationFn: () => api<ReloadAnswer>("/configuration/reload", { method: "POST" }),
    onSuccess: async (given) => {
      setAnswer(given);
      await refresh();
    },
  });
  return (
    <Page
      title="Configuration"
      actions={
        <Button kind="primary" icon="refresh" isBusy={reload.isPending} onPress={() => reload.mutate()}>
          {reload.isPending ? "Waiting for the processes" : "Check the files and reload"}
        </Button>
      }
    >
      <ErrorLine error={reload.error} />
      {answer !== null && <ReloadOutcome answer={answer} onClose={() => setAnswer(null)} />}
      <QueryView query={query}>
        {(configuration) => (
          <>
            <InEffect configuration={configuration} />
            <Resources configuration={configuration} />
            <Settings settings={configuration.settings} />
          </>
        )}
      </QueryView>
    </Page>
  );
}

function InEffect({ configuration }: { readonly configuration: ConfigurationInEffect }): JSX.Element {
  const processes = useStats().data?.processes ?? [];
  return (
    <>
      <Card title="In effect">
        <Facts
          facts={{
            Version: configuration.version,
            Checksum: <code>{configuration.hash}</code>,
            Loaded: <Time value={configuration.loaded_at} isExact />,
          }}
        />
      </Card>
      {processes.length > 0 && <Processes processes={processes} />}
    </>
  );
}

function Resources({ configuration }: { readonly configuration: ConfigurationInEffect }): JSX.Element {
  const { resources } = configuration;
  return (
    <Card title="Resources" note="Each with every default and rule in effect, and its Prisma model." isFlush>
      {resources.length === 0 ? (
        <Empty icon="resources" title="No resource yet">
          <p>
            Put a mapping file into <code>config/resources</code>, and reload.
          </p>
        </Empty>
      ) : (
        <DataTable
          label="Resources"
          rows={resources}
          rowKey={({ name }) => name}
          rowHref={({ name }) => `/admin/configuration/${encodeURIComponent(name)}`}
          columns={[
            { title: "Name", render: ({ name }) => name },
            { title: "Table", render: ({ definition }) => <Value value={definition["table"]} /> },
            { title: "Managed", render: ({ definition }) => <Value value={definition["managed"]} /> },
            {
              title: "Triggers",
              render: ({ definition }) => (
                <TriggerBadges triggers={definition["triggers"] as readonly string[]} />
              ),
            },
            { title: "File", render: ({ file }) => <code className="break">{file}</code> },
          ]}
        />
      )}
    </Card>
  );
}

function Settings({ settings }: { readonly settings: readonly SettingInEffect[] }): JSX.Element {
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const rows = settings.filter(({ key, variable }) =>
    `${key} ${variable ?? ""}`.toLowerCase().includes(wanted),
  );
  return (
    <Card
      title="Settings"
      note="As service.yaml would have them: durations in seconds. Secrets are not shown."
      isFlush
    >
      <div className="filters">
        <SearchBox label="Search keys and variables" value={search} onSearch={setSearch} />
      </div>
      {rows.length === 0 ? (
        <Empty title="No setting matches" action={<Button onPress={() => setSearch("")}>Show all</Button>} />
      ) : (
        <DataTable
          label="Settings"
          rows={rows}
          rowKey={({ key }) => key}
          columns={[
            { title: "Key", render: ({ key }) => <code>{key}</code> },
            { title: "Value", render: (setting) => <SettingValue setting={setting} /> },
            { title: "Default", render: (setting) => <Value value={setting.default as Json} /> },
            {
              title: "Variable",
              render: ({ variable }) =>
                variable === null ? <Value value={null} /> : <code>{variable}</code>,
            },
            {
              title: "A change takes",
              render: (setting) => (setting.takes_restart ? "a restart" : "a reload"),
            },
          ]}
        />
      )}
    </Card>
  );
}

function SettingValue({ setting }: { readonly setting: SettingInEffect }): JSX.Element {
  if (setting.is_secret)
    return setting.is_set ? <Badge tone="good">set, secret</Badge> : <Badge>not set, secret</Badge>;
  return <Value value={setting.value as Json} />;
}
