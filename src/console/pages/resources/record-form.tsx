import { useEffect, useRef, useState, type JSX, type ReactNode } from "react";
import { faultsOf, isGone, otherFaultsOf } from "../../api/api-error.ts";
import { useWrite } from "../../api/use-write.ts";
import { goToBadInput } from "../../parts/bad-input.ts";
import { Button } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import {
  AreaField,
  FieldErrors,
  optionsOf,
  SelectField,
  TextField,
  type FieldProps,
} from "../../parts/field.tsx";
import { formQuestion, useLeaveQuestion } from "../../parts/leaving.ts";
import { ErrorLine } from "../../parts/state.tsx";
import { Segments } from "../../parts/segments.tsx";
import type { Draft } from "./draft.ts";
import { isVisible } from "./form-body.ts";
import { JsonTextError, type FormField } from "./form-fields.ts";
import { RelationPicker } from "./relation-picker.tsx";

const modes = [
  ["form", "Form"],
  ["json", "JSON"],
] as const;

/**
 * Edits a record by the rules of its resource. The server's messages are shown at their fields.
 * Input is kept after an error.
 */
export function RecordForm({
  fields,
  draft,
  isNew = false,
  submitLabel,
  gone,
  onSubmit,
  children,
}: {
  readonly fields: readonly FormField[];
  readonly draft: Draft;
  readonly isNew?: boolean;
  readonly submitLabel: string;
  /** Shown instead of the error when the record no longer exists. */
  readonly gone?: ReactNode;
  readonly onSubmit: () => Promise<void>;
  /** Shown beside the submit button. */
  readonly children?: ReactNode;
}): JSX.Element {
  const { error, isPending, mutate } = useWrite({ mutationFn: onSubmit });
  const form = useRef<HTMLFormElement>(null);
  useLeaveQuestion(draft.hasChanges ? formQuestion : null);
  useEffect(() => {
    // Moves the focus to the first field with a fault.
    if (error !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  const isJson = draft.json !== null || fields.length === 0;
  const shown = isJson ? [] : fields.map(({ name }) => name);
  const isAtField = shown.some((name) => faultsOf(error, name).length > 0);
  return (
    <form
      className="stack form"
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isPending && !goToBadInput(event.currentTarget)) mutate();
      }}
    >
      {fields.length > 0 && <Modes draft={draft} />}
      {isGone(error) && gone !== undefined ? (
        gone
      ) : (
        <>
          {!isAtField && <ErrorLine error={error} />}
          <FieldErrors errors={otherFaultsOf(error, shown)} />
        </>
      )}
      {isJson ? (
        <BodyArea draft={draft} />
      ) : (
        fields.map((field) => (
          <FieldControl
            key={field.name}
            field={field}
            draft={draft}
            isNew={isNew}
            errors={faultsOf(error, field.name)}
          />
        ))
      )}
      <div className="row form-actions">
        <Button type="submit" kind="primary" isBusy={isPending}>
          {submitLabel}
        </Button>
        {children}
      </div>
    </form>
  );
}

/** Switches between the fields and JSON. Asks when input would be lost. */
function Modes({ draft }: { readonly draft: Draft }): JSX.Element {
  // Reason why the fields cannot show the JSON.
  const [reason, setReason] = useState<string | null>(null);
  const closeJson = (): void => {
    try {
      draft.closeJson();
    } catch (error) {
      if (!(error instanceof JsonTextError)) throw error;
      setReason(error.message);
    }
  };
  return (
    <>
      <Segments
        label="How to edit"
        options={modes}
        selected={draft.json === null ? "form" : "json"}
        onSelect={(mode) => (mode === "json" ? draft.openJson() : closeJson())}
      />
      {reason !== null && (
        <ConfirmDialog
          title="Discard the JSON?"
          confirmLabel="Discard the JSON"
          onClose={() => setReason(null)}
          onConfirm={async () => draft.discardJson()}
        >
          <p className="break">The form cannot go on with it. {reason}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function BodyArea({ draft }: { readonly draft: Draft }): JSX.Element {
  return (
    <AreaField
      label="Body"
      isRequired
      isCode
      rows={14}
      hint="Sent as it stands, so that fields which are not in it stay as they are."
      value={draft.json ?? "{}"}
      onChange={draft.setJson}
    />
  );
}

function FieldControl({
  field,
  draft,
  isNew,
  errors,
}: {
  readonly field: FormField;
  readonly draft: Draft;
  readonly isNew: boolean;
  readonly errors: readonly string[];
}): JSX.Element {
  const { name, kind, isRequired, hint, choices } = field;
  const shared: FieldProps & { readonly value: string; readonly onChange: (value: string) => void } = {
    label: name,
    hint,
    errors,
    isRequired,
    hasMark: isNew,
    value: draft.texts[name] ?? "",
    onChange: (text) => draft.set(field, text),
  };
  // A single-line input would remove the line feeds of the text.
  const [hasLines] = useState(/[\r\n]/.test(shared.value));
  switch (kind) {
    case "relation":
      return <RelationPicker {...shared} resource={field.resource ?? ""} />;
    case "choice":
    case "boolean": {
      const options = kind === "choice" ? optionsOf(choices) : truths;
      const isMissing = !options.some(({ value }) => value === shared.value);
      return <SelectField {...shared} options={isMissing || !isRequired ? [none, ...options] : options} />;
    }
    case "text":
      return <AreaField {...shared} />;
    case "list":
      return <AreaField {...shared} hint={hint ?? "One on each line, or a JSON list"} />;
    case "json":
      return <AreaField {...shared} isCode hint={hint ?? "JSON"} />;
    case "number":
      return <TextField {...shared} inputMode="decimal" />;
    case "moment":
    case "date":
      if (!isVisible(kind, shared.value)) return <TextField {...shared} />;
      return kind === "date" ? (
        <TextField {...shared} type="date" />
      ) : (
        <TextField {...shared} type="datetime-local" step={1} hint={hint ?? "In your own time zone"} />
      );
    case "line":
      return hasLines ? <AreaField {...shared} /> : <TextField {...shared} />;
  }
}

const none = { value: "", title: "–" };
const truths = [
  { value: "true", title: "yes" },
  { value: "false", title: "no" },
];
