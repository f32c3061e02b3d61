import type { JSX } from "react";
import { useStats } from "../../app/caller.ts";
import type { Stats } from "../../api/types.ts";
import { LinkButton } from "../../parts/button.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, Note, QueryView } from "../../parts/state.tsx";
import { formatSeconds, secondsBetween } from "../../parts/time.tsx";
import { Processes } from "./processes.tsx";
import { Rates } from "./rates.tsx";
import { Receivers } from "./receivers.tsx";
import { Tiles } from "./tiles.tsx";
import "./overview.css";

/** Age from which waiting work counts as stuck: every wait of the service is shorter. */
const oldBacklogSeconds = 60;

export function OverviewPage(): JSX.Element {
  const query = useStats();
  return (
    <Page title="Overview">
      <QueryView query={query}>
        {(stats) => (
          <div className="stack">
            <Verdict stats={stats} />
            <Tiles stats={stats} />
            <Rates stats={stats} />
            {stats.receivers !== null && <Receivers receivers={stats.receivers} of={stats.of} />}
            {stats.processes !== null && <Processes processes={stats.processes} />}
          </div>
        )}
      </QueryView>
    </Page>
  );
}

/** Shows the faults of the service, or the first steps while it is unused. */
function Verdict({ stats }: { readonly stats: Stats }): JSX.Element {
  const { changes, deliveries } = stats.rates.week;
  const isUnused = [...changes, ...deliveries].every((count) => count === 0);
  const faults = faultsOf(stats);
  const may = (kind: string): boolean =>
    stats.caller.scopes.some((scope) => scope === "*" || scope.endsWith(kind));
  if (faults.length > 0)
    return (
      <Note tone="warn" role="status">
        <h2>Needs attention</h2>
        {faults.map((fault) => (
          <p key={fault}>{fault}</p>
        ))}
      </Note>
    );
  if (isUnused)
    return (
      <Card>
        <Empty
          icon="overview"
          title="Nothing has happened yet this week"
          action={
            <div className="row">
              {may("write") && (
                <LinkButton kind="primary" icon="resources" href="/resources">
                  Create a record
                </LinkButton>
              )}
              {may("webhooks") && (
                <LinkButton icon="webhooks" href="/webhooks/new">
                  Add a webhook
                </LinkButton>
              )}
            </div>
          }
        >
          A webhook sends the changes of records to a URL. The next change creates its first delivery.
        </Empty>
      </Card>
    );
  return (
    <Note tone="good" icon="check" role="status">
      <h2>All is well</h2>
      <p>Nothing fails, and nothing waits for longer than it should.</p>
    </Note>
  );
}

function faultsOf({ now, backlog, receivers, processes }: Stats): readonly string[] {
  const failing = (receivers ?? []).filter(({ state }) => state === "failing").length;
  const refusing = (processes ?? []).filter(({ reload_faults: faults }) => faults.length > 0).length;
  const eventAge = secondsBetween(backlog.oldest_event_at, now);
  // A service that has just started has registered no process yet. Of 100 or more, only the APIs
  // may be listed.
  const isIdle =
    processes !== null &&
    processes.length > 0 &&
    processes.length < 100 &&
    processes.every(({ program }) => program === "api");
  return [
    ...(failing > 0 ? [`${failing} ${failing === 1 ? "receiver fails" : "receivers fail"}; see below.`] : []),
    ...(eventAge > oldBacklogSeconds
      ? [`The oldest change has waited for ${formatSeconds(eventAge)} without being given to anybody.`]
      : []),
    ...(isIdle ? ["No dispatcher runs, so that nothing is delivered."] : []),
    ...(processes !== null && new Set(processes.map(({ configuration }) => configuration)).size > 1
      ? ["The processes have different configurations; see below."]
      : []),
    ...(refusing > 0
      ? [`${refusing} ${refusing === 1 ? "process has" : "processes have"} refused a reload; see below.`]
      : []),
  ];
}
