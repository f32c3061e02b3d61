import type { UseQueryResult } from "@tanstack/react-query";
import { useRef, useState, type JSX } from "react";
import { Link } from "wouter";
import { refresh } from "../../api/query-client.ts";
import type { CursorPage } from "../../api/types.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, messageOf } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toast.tsx";
import { useList } from "../../parts/use-list.ts";
import { eventColumn, receiverColumn } from "../deliveries/delivery-columns.tsx";
import type { DeadLetter } from "./types.ts";

type DeadLetters = CursorPage<DeadLetter> & { readonly queued: number | null };

const columns: readonly Column<DeadLetter>[] = [
  { title: "Delivery", render: ({ id }) => id },
  eventColumn,
  receiverColumn,
  {
    title: "User",
    render: ({ user_id: id }) => id !== null && <Link href={`/admin/users/${id}`}>{id}</Link>,
  },
  { title: "Attempts", isNumeric: true, render: ({ attempt }) => attempt },
  {
    title: "Last error",
    render: ({ last_error: error }) => <span className="break">{error ?? "unknown"}</span>,
  },
  { title: "Given up", render: (one) => <Time value={one.updated_at} /> },
  {
    title: "In svc.dead",
    render: ({ dead_lettered_at: time }) =>
      time === null ? <Badge tone="warn">not yet</Badge> : <Time value={time} />,
  },
];

export function DeadLettersPage(): JSX.Element {
  const query = useList<DeadLetter>("/dead-letters") as UseQueryResult<DeadLetters>;
  const [wanted, setWanted] = useState<readonly DeadLetter[]>([]);
  // A retried delivery stays in the list, so this page remembers it, and retries each row only
  // once.
  const retried = useRef(new Set<number>());
  const isLeft = ({ id }: DeadLetter): boolean => !retried.current.has(id);
  const post = usePostOnce();
  const retry = async ({ id }: DeadLetter): Promise<void> => {
    await post(`/webhook-deliveries/${id}/retry`, undefined);
    retried.current.add(id);
  };
  const rows = query.data?.data ?? [];
  const askForAll = (): void => {
    const left = rows.filter(isLeft);
    if (left.length === 0) toast("Each of these was retried already.");
    setWanted(left);
  };
  return (
    <Page
      title="Dead letters"
      actions={
        rows.length > 0 && (
          <Button icon="refresh" onPress={askForAll}>
            Retry this page
          </Button>
        )
      }
    >
      <Card
        isFlush
        title="Deliveries whose attempts are spent"
        note="A retry creates a new delivery of the same event. The message in the queue svc.dead stays there."
      >
        <ListTable
          label="Dead letters"
          query={query}
          rowKey={({ id }) => id}
          rowHref={({ id }) => `/deliveries/${id}`}
          columns={[
            ...columns,
            {
              title: "Actions",
              render: (one) => (
                <Button kind="quiet" aria-label={`Retry delivery ${one.id}`} onPress={() => setWanted([one])}>
                  Retry
                </Button>
              ),
            },
          ]}
          empty={
            <Empty icon="check" title="Nothing was given up">
              <p>A delivery comes here when its last attempt has failed.</p>
            </Empty>
          }
          total={query.data && <Queued count={query.data.queued} />}
        />
      </Card>
      {wanted.length > 0 && (
        <RetryDialog
          letters={wanted}
          retry={retry}
          onDone={async () => {
            await refresh("/dead-letters");
            setWanted((shown) => shown.filter(isLeft));
          }}
          onClose={() => setWanted([])}
        />
      )}
    </Page>
  );
}

function Queued({ count }: { readonly count: number | null }): JSX.Element {
  if (count === null) return <span>The broker does not answer.</span>;
  return (
    <span>
      {count.toLocaleString("en")} {count === 1 ? "message" : "messages"} in svc.dead
    </span>
  );
}

/**
 * Retries deliveries one after the other. Shows the progress and the refused retries. Only these
 * are retried at another press.
 */
function RetryDialog({
  letters,
  retry,
  onDone,
  onClose,
}: {
  readonly letters: readonly DeadLetter[];
  readonly retry: (letter: DeadLetter) => Promise<void>;
  readonly onDone: () => Promise<unknown>;
  readonly onClose: () => void;
}): JSX.Element {
  const [done, setDone] = useState(0);
  const [only] = letters;
  const title =
    letters.length === 1 ? `Retry delivery ${only?.id ?? ""}?` : `Retry ${letters.length} deliveries?`;
  const retryAll = async (): Promise<void> => {
    const refusals: string[] = [];
    for (const letter of letters) {
      try {
        await retry(letter);
      } catch (error) {
        refusals.push(`${letter.id}: ${messageOf(error)}`);
      }
      setDone((count) => count + 1);
    }
    await onDone();
    setDone(0);
    const made = letters.length - refusals.length;
    if (made > 0)
      toast(made === 1 ? "A new delivery is on its way." : `${made} new deliveries are on their way.`);
    if (refusals.length > 0) throw new Error(refusals.slice(0, 5).join(" "));
  };
  return (
    <ConfirmDialog
      title={title}
      confirmLabel={letters.length === 1 ? "Retry it" : "Retry them"}
      isDangerous={false}
      onConfirm={retryAll}
      onClose={onClose}
    >
      <p>
        {letters.length === 1 ? "A new delivery of its event goes" : "A new delivery of each event goes"} to
        the webhook as it is now. The receiver sees the same event id, and a new delivery id.
      </p>
      {letters.length > 1 && (
        <progress max={letters.length} value={done} aria-label={`${done} of ${letters.length}`} />
      )}
    </ConfirmDialog>
  );
}
