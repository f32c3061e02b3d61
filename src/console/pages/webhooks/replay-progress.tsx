import { useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { Link } from "wouter";
import { api } from "../../api/client.ts";
import { every } from "../../api/every.ts";
import { queryClient, refresh } from "../../api/query-client.ts";
import type { Replay } from "../../api/webhook-types.ts";
import { useWrite } from "../../api/use-write.ts";
import { StatusBadge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { ErrorLine, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";

const path = "/webhook-replays";

/** Shows the progress of a replay, with buttons that pause, resume or cancel it. */
export function ReplayProgressPage({
  id,
  replay,
}: {
  readonly id: string;
  readonly replay: string;
}): JSX.Element {
  const query = useQuery<Replay>({
    queryKey: [path, `/${encodeURIComponent(replay)}`],
    refetchInterval: every(1_000, hasEnded),
  });
  return (
    <Page
      title={`Replay ${replay}`}
      crumbs={[
        { title: "Webhooks", href: "/webhooks" },
        { title: `Webhook ${id}`, href: `/webhooks/${id}` },
      ]}
      status={query.data && <StatusBadge status={query.data.state} />}
    >
      <QueryView query={query}>{(data) => <Progress replay={data} />}</QueryView>
    </Page>
  );
}

function Progress({ replay }: { readonly replay: Replay }): JSX.Element {
  const { done, total, failed, is_estimate: isEstimate, state, reason } = replay;
  return (
    <Card actions={hasEnded(replay) ? undefined : <Steer replay={replay} />} title="Progress">
      <div className="stack">
        <div>
          <progress className="progress" max={Math.max(1, total)} value={done} aria-label="Events done" />
          <p className="numeric" role="status">
            {done.toLocaleString("en")} of {isEstimate ? "about " : ""}
            {total.toLocaleString("en")} events
            {failed > 0 && `, ${failed.toLocaleString("en")} of which could not be delivered`}
          </p>
        </div>
        <p className="muted">{sentences[state]}</p>
        {reason !== null && <p className="break">{reason}</p>}
        <Facts
          facts={{
            Since: <Time value={replay.since} isExact />,
            Until: <Time value={replay.until} isExact />,
            Which: replay.status.join(", "),
            ...(replay.resource !== null && { Resource: replay.resource }),
            Begun: <Time value={replay.created_at} />,
          }}
        />
        <Link href={`/deliveries?webhook_id=${replay.webhook_id}`}>The deliveries of the webhook</Link>
      </div>
    </Card>
  );
}

const sentences: Readonly<Record<Replay["state"], string>> = {
  running: "It goes on when you leave this page, and when a process dies.",
  paused: "Deliveries that are already created still go out, 300 at most.",
  done: "All deliveries are created. Those that wait go out one after the other.",
  cancelled: "What waited was cancelled. What had gone out stays.",
};

function hasEnded(replay: Replay | undefined): boolean {
  return replay === undefined || replay.state === "done" || replay.state === "cancelled";
}

function Steer({ replay }: { readonly replay: Replay }): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  const move = useWrite({
    mutationFn: (to: "pause" | "resume" | "cancel") =>
      api<Replay>(`${path}/${replay.id}/${to}`, { method: "POST" }),
    onSuccess: (moved) => queryClient.setQueryData([path, `/${replay.id}`], moved),
    onError: () => refresh(path),
  });
  const isPaused = replay.state === "paused";
  return (
    <>
      <ErrorLine error={move.error} />
      <Button
        icon={isPaused ? "play" : "pause"}
        isBusy={move.isPending}
        onPress={() => move.mutate(isPaused ? "resume" : "pause")}
      >
        {isPaused ? "Resume" : "Pause"}
      </Button>
      <Button kind="danger" onPress={() => setAsked(true)}>
        Cancel the replay
      </Button>
      {isAsked && (
        <ConfirmDialog
          title="Cancel the replay?"
          confirmLabel="Cancel the replay"
          onClose={() => setAsked(false)}
          onConfirm={() => move.mutateAsync("cancel")}
        >
          <p>
            Its deliveries that wait are cancelled. What has gone out stays; another replay takes up the rest.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
