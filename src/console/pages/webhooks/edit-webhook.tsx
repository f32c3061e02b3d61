import { useEffect, useState, type JSX, type SubmitEvent } from "react";
import type { Webhook } from "../../api/webhook-types.ts";
import { goToBadInput } from "../../parts/bad-input.ts";
import { Button } from "../../parts/button.tsx";
import { formQuestion, useLeaveQuestion } from "../../parts/leaving.ts";
import { Card } from "../../parts/page.tsx";
import { ErrorLine } from "../../parts/state.tsx";
import { toast } from "../../parts/toast.tsx";
import { changesOf, draftOf, headerFaults, isChanged, parseFilter, type Draft } from "./draft.ts";
import { useChangeWebhook } from "./use-webhook.ts";
import { WhatFields } from "./what-fields.tsx";
import { WhereFields } from "./where-fields.tsx";

/** Changes a webhook, except its resource and its secret. */
export function EditWebhook({
  webhook,
  onDone,
}: {
  readonly webhook: Webhook;
  readonly onDone: () => void;
}): JSX.Element {
  const [start] = useState<Draft>(() => draftOf(webhook));
  const [draft, setDraft] = useState(start);
  useLeaveQuestion(isChanged(draft, start) ? formQuestion : null);
  const change = useChangeWebhook(webhook.id);
  // The button that opened the form gets the focus back when the form closes.
  const [opener] = useState(() => document.activeElement);
  useEffect(() => () => (opener as HTMLElement | null)?.focus(), [opener]);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (goToBadInput(event.currentTarget)) return;
    change.mutate(changesOf(draft, start), {
      onSuccess: () => {
        toast("The webhook is changed.");
        onDone();
      },
    });
  };
  const fields = {
    draft,
    error: change.error,
    isNew: false,
    onChange: (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes })),
  };
  const isReady =
    draft.events.length > 0 &&
    draft.url.trim() !== "" &&
    headerFaults(draft.headers).length === 0 &&
    parseFilter(draft.filter).fault === undefined;
  return (
    <Card title="Edit">
      <form className="stack form wide" noValidate onSubmit={submit}>
        <ErrorLine error={change.error} />
        <WhereFields {...fields} />
        <WhatFields {...fields} />
        <div className="row form-actions">
          <Button type="submit" kind="primary" isBusy={change.isPending} isDisabled={!isReady}>
            Save
          </Button>
          <Button onPress={onDone}>Cancel</Button>
        </div>
      </form>
    </Card>
  );
}
