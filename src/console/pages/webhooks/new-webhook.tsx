import { useEffect, useRef, useState, type JSX, type SubmitEvent } from "react";
import { refresh } from "../../api/query-client.ts";
import type { WebhookWithSecret } from "../../api/webhook-types.ts";
import { useRights } from "../../app/caller.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useWrite } from "../../api/use-write.ts";
import { goToBadInput } from "../../parts/bad-input.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { formQuestion, useLeaveQuestion, useWayOn } from "../../parts/leaving.ts";
import { Card, Page } from "../../parts/page.tsx";
import { ErrorLine, ScopeNote } from "../../parts/state.tsx";
import {
  bodyOf,
  emptyDraft,
  headerFaults,
  isChanged,
  isFaultOfWhat,
  parseFilter,
  type Draft,
} from "./draft.ts";
import { leaveQuestion, SecretStep } from "./secret-step.tsx";
import { WhatFields } from "./what-fields.tsx";
import { WhereFields } from "./where-fields.tsx";

const steps = ["What", "Where", "Secret"] as const;

/** Creates a webhook in three steps. */
export function NewWebhookPage(): JSX.Element {
  const goOn = useWayOn();
  const rights = useRights();
  const [draft, setDraft] = useState<Draft>(emptyDraft);
  const [step, setStep] = useState(0);
  const post = usePostOnce();
  const create = useWrite({
    // The answer contains a secret, so it is not cached after its page closes.
    gcTime: 0,
    mutationFn: () => {
      const secret = draft.secret === "" ? {} : { secret: draft.secret };
      return post<WebhookWithSecret>("/webhooks", { ...bodyOf(draft), resource: draft.resource, ...secret });
    },
    onSuccess: async () => {
      setStep(2);
      await refresh("/webhooks");
    },
    onError: (error) => {
      if (isFaultOfWhat(error)) setStep(0);
    },
  });
  const made = create.data;
  const isTyped = made === undefined && isChanged(draft, emptyDraft);
  useLeaveQuestion(create.isPending ? leaveQuestion : isTyped ? formQuestion : null);
  const change = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const isWhatDone =
    draft.resource !== "" && draft.events.length > 0 && parseFilter(draft.filter).fault === undefined;
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (goToBadInput(event.currentTarget)) return;
    if (step === 0) setStep(1);
    else create.mutate();
  };
  const fields = { draft, onChange: change, error: create.error, isNew: true };
  return (
    <Page title="New webhook" crumbs={[{ title: "Webhooks", href: "/webhooks" }]}>
      <Steps at={step} />
      {step === 2 && made !== undefined ? (
        <SecretStep webhook={made} onDone={() => goOn(`/webhooks/${made.id}`)} />
      ) : !rights.has("webhooks") ? (
        <Card>
          <ScopeNote scope="webhooks" />
        </Card>
      ) : (
        <Card title={step === 0 ? "What to send" : "Where to send it"}>
          <form className={`stack form${step === 0 ? " wide" : ""}`} noValidate onSubmit={submit}>
            <ErrorLine error={create.error} />
            {step === 0 ? <WhatFields {...fields} /> : <WhereFields {...fields} />}
            <div className="row form-actions">
              {step === 1 && <Button onPress={() => setStep(0)}>Back</Button>}
              {step === 0 ? (
                <Button type="submit" kind="primary" isDisabled={!isWhatDone}>
                  Next: where
                </Button>
              ) : (
                <Button
                  type="submit"
                  kind="primary"
                  isBusy={create.isPending}
                  isDisabled={draft.url.trim() === "" || headerFaults(draft.headers).length > 0}
                >
                  Create the webhook
                </Button>
              )}
              <LinkButton href="/webhooks" kind="quiet">
                Cancel
              </LinkButton>
            </div>
          </form>
        </Card>
      )}
    </Page>
  );
}

function Steps({ at }: { readonly at: number }): JSX.Element {
  const list = useRef<HTMLOListElement>(null);
  const last = useRef(at);
  useEffect(() => {
    // The focus is lost with the button of the previous step, unless a field of this one took it.
    if (last.current !== at && document.activeElement === document.body) list.current?.focus();
    last.current = at;
  }, [at]);
  return (
    <ol className="row steps" aria-label="Steps" ref={list} tabIndex={-1}>
      {steps.map((step, index) => (
        <li
          key={step}
          className={index < at ? "past" : index === at ? "here" : ""}
          aria-current={index === at ? "step" : undefined}
        >
          <span className="step-number" aria-hidden="true">
            {index < at ? "✓" : index + 1}
          </span>
          {step}
        </li>
      ))}
    </ol>
  );
}
