import { useState, type JSX } from "react";
import { refresh } from "../../api/query-client.ts";
import type { Webhook, WebhookWithSecret } from "../../api/webhook-types.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useWrite } from "../../api/use-write.ts";
import { FormDialog } from "../../parts/dialog.tsx";
import { SelectField } from "../../parts/field.tsx";
import { Note } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { leaveQuestion, Secret } from "./secret-step.tsx";

const graces = [
  { value: "86400", title: "a day" },
  { value: "3600", title: "an hour" },
  { value: "604800", title: "a week" },
  { value: "0", title: "none: others know the secret" },
];

/** Creates a new secret, and shows it this once. */
export function RotateDialog({
  webhook,
  onClose,
}: {
  readonly webhook: Webhook;
  readonly onClose: () => void;
}): JSX.Element {
  const [grace, setGrace] = useState("86400");
  const post = usePostOnce();
  const rotate = useWrite({
    // The answer contains a secret, so it is not cached after its page closes.
    gcTime: 0,
    mutationFn: () =>
      post<WebhookWithSecret>(`/webhooks/${webhook.id}/rotate-secret`, { grace: Number(grace) }),
    // The secret is shown at once, whether or not the webhook can be read.
    onSuccess: () => void refresh("/webhooks"),
  });
  const made = rotate.data;
  return (
    <FormDialog
      title="Rotate the secret?"
      submitLabel="Rotate"
      fields={[]}
      write={rotate}
      question={null}
      // With a secret that was created but not shown, the receiver refuses every signature.
      once={{
        title: "The new secret",
        question: leaveQuestion,
        shown: made && (
          <>
            <Secret webhook={made} />
            <p>
              {grace === "0" ? (
                "The old one signs nothing from now on."
              ) : (
                <>
                  The old one signs beside it until <Time value={made.previous_secret_until} isExact />. Give
                  the receiver the new one by then.
                </>
              )}
            </p>
          </>
        ),
      }}
      onClose={onClose}
    >
      <p>
        Deliveries are signed with the old and the new secret while the grace lasts, so that none is refused.
      </p>
      <SelectField label="Grace period" isRequired value={grace} options={graces} onChange={setGrace} />
      {grace === "0" && (
        <Note tone="warn">Receivers refuse deliveries from now on, until they have the new secret.</Note>
      )}
    </FormDialog>
  );
}
