import { useState, type JSX } from "react";
import { api } from "../../api/client.ts";
import { refresh } from "../../api/query-client.ts";
import type { Webhook } from "../../api/webhook-types.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { useWayOn } from "../../parts/leaving.ts";
import { Menu } from "../../parts/menu.tsx";
import { messageOf } from "../../parts/state.tsx";
import { toast } from "../../parts/toast.tsx";
import { receiverOf } from "./health.ts";
import { RotateDialog } from "./rotate-dialog.tsx";
import { useChangeWebhook, type FoundWebhook } from "./use-webhook.ts";

type Asked = "pause" | "rotate" | "discard" | "delete";

export function WebhookActions({
  found: { webhook, isOwn },
  onEdit,
}: {
  readonly found: FoundWebhook;
  readonly onEdit: () => void;
}): JSX.Element {
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChangeWebhook(webhook.id);
  // Uses this component's `useWayOn`: the question may be closed before the answer comes.
  const goOn = useWayOn();
  const replay = (
    <LinkButton href={`/webhooks/${webhook.id}/replay`} icon="refresh">
      Replay
    </LinkButton>
  );
  if (!isOwn) return replay;
  const resume = (): void =>
    change.mutate(
      { is_active: true },
      {
        onSuccess: () => toast("The webhook is active. What was held goes out now."),
        onError: (error) => toast(messageOf(error), { isBad: true }),
      },
    );
  return (
    <>
      {webhook.is_active ? (
        <Button icon="pause" onPress={() => setAsked("pause")}>
          Pause
        </Button>
      ) : (
        <Button kind="primary" icon="play" isBusy={change.isPending} onPress={resume}>
          Resume
        </Button>
      )}
      <Button icon="edit" onPress={onEdit}>
        Edit
      </Button>
      {replay}
      <Menu
        label="More actions"
        trigger={<Button icon="more" aria-label="More actions" />}
        actions={[
          { title: "Rotate the secret", icon: "key", act: () => setAsked("rotate") },
          { title: "Discard held deliveries", icon: "cross", act: () => setAsked("discard") },
          { title: "Delete the webhook", icon: "trash", act: () => setAsked("delete") },
        ]}
      />
      {asked === "rotate" ? (
        <RotateDialog webhook={webhook} onClose={() => setAsked(null)} />
      ) : (
        asked !== null && (
          <Confirm asked={asked} webhook={webhook} goOn={goOn} onClose={() => setAsked(null)} />
        )
      )}
    </>
  );
}

function Confirm({
  asked,
  webhook,
  goOn,
  onClose,
}: {
  readonly asked: "pause" | "discard" | "delete";
  readonly webhook: Webhook;
  readonly goOn: (to: string) => void;
  readonly onClose: () => void;
}): JSX.Element {
  const change = useChangeWebhook(webhook.id);
  const path = `/webhooks/${webhook.id}`;
  if (asked === "pause")
    return (
      <ConfirmDialog
        title="Pause the webhook?"
        confirmLabel="Pause"
        isDangerous={false}
        onClose={onClose}
        onConfirm={() => change.mutateAsync({ is_active: false })}
      >
        <p>
          Its deliveries are held, those of new events too. They go out in their order when you resume it.
          What is held for longer than <code>webhooks.holdFor</code>, a week unless it is set, is cancelled.
        </p>
      </ConfirmDialog>
    );
  if (asked === "discard")
    return (
      <ConfirmDialog
        title="Discard held deliveries?"
        confirmLabel="Discard"
        onClose={onClose}
        onConfirm={async () => {
          const { held } = await api<{ readonly held: number }>(`${path}/discard-held`, { method: "POST" });
          await refresh("/webhook-deliveries");
          toast(held === 0 ? "Nothing was held." : `${counted(held)} will be cancelled in a moment.`);
        }}
      >
        <p>
          Every delivery that is held for this webhook is cancelled. Their events stay: a replay of what was
          cancelled brings them back.
        </p>
      </ConfirmDialog>
    );
  return (
    <ConfirmDialog
      title="Delete the webhook?"
      confirmLabel="Delete the webhook"
      onClose={onClose}
      onConfirm={async () => {
        await api(path, { method: "DELETE" });
        goOn("/webhooks");
        await refresh("/webhooks");
        toast("The webhook is deleted.");
      }}
    >
      <p className="break">
        {receiverOf(webhook.url).host} gets nothing more, and what is unfinished is cancelled. This cannot be
        undone; to stop it for a while, pause it.
      </p>
    </ConfirmDialog>
  );
}

function counted(held: number): string {
  const number = held >= 10_000 ? "10,000 or more" : String(held);
  return `${number} ${held === 1 ? "delivery" : "deliveries"}`;
}
