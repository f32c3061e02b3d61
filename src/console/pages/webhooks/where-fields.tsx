import type { JSX } from "react";
import { faultsOf } from "../../api/api-error.ts";
import { Button } from "../../parts/button.tsx";
import { FieldErrors, TextField } from "../../parts/field.tsx";
import { headerFaults, type FieldsProps, type HeaderRow } from "./draft.ts";

const mostHeaders = 10;

/** Asks where a webhook sends, and how. */
export function WhereFields({
  draft,
  onChange,
  error,
  isNew,
}: FieldsProps & { readonly isNew: boolean }): JSX.Element {
  return (
    <>
      <TextField
        label="URL"
        isRequired
        autoFocus
        type="url"
        inputMode="url"
        maxLength={2048}
        placeholder="https://example.com/hooks/orders"
        hint="Gets a POST for each event. Without user name and password; put these into a header."
        errors={faultsOf(error, "url")}
        value={draft.url}
        onChange={(url) => onChange({ url })}
      />
      <TextField
        label="Description"
        maxLength={255}
        hint="For you and your colleagues."
        errors={faultsOf(error, "description")}
        value={draft.description}
        onChange={(description) => onChange({ description })}
      />
      <HeaderFields
        rows={draft.headers}
        errors={[...headerFaults(draft.headers), ...faultsOf(error, "headers")]}
        onChange={(headers) => onChange({ headers })}
      />
      <TextField
        label="Attempts a second at most"
        type="number"
        min="0.1"
        max="1000"
        step="any"
        hint="From 0.1 to 1,000. What has to wait stays in the database; nothing is dropped."
        errors={faultsOf(error, "rate_limit")}
        value={draft.rateLimit}
        onChange={(rateLimit) => onChange({ rateLimit })}
      />
      {isNew && (
        <TextField
          label="Secret of your own"
          maxLength={128}
          spellCheck={false}
          hint="24 to 128 visible characters. Leave it empty, and the service creates one."
          errors={faultsOf(error, "secret")}
          value={draft.secret}
          onChange={(secret) => onChange({ secret })}
        />
      )}
    </>
  );
}

function HeaderFields({
  rows,
  errors,
  onChange,
}: {
  readonly rows: readonly HeaderRow[];
  readonly errors: readonly string[];
  readonly onChange: (rows: readonly HeaderRow[]) => void;
}): JSX.Element {
  const set = (id: number, changes: Partial<HeaderRow>): void =>
    onChange(rows.map((row) => (row.id === id ? { ...row, ...changes } : row)));
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1;
  return (
    <fieldset>
      <legend>
        Headers of your own <span className="muted small">optional</span>
      </legend>
      {rows.map(({ id, name, value }, index) => (
        <div key={id} className="header-row">
          <input
            className="input mono"
            aria-label={`Name of header ${index + 1}`}
            placeholder="Authorization"
            value={name}
            onChange={(event) => set(id, { name: event.currentTarget.value })}
          />
          <input
            className="input mono"
            aria-label={`Value of header ${index + 1}`}
            placeholder="Bearer …"
            autoComplete="off"
            value={value}
            onChange={(event) => set(id, { value: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            icon="trash"
            aria-label={`Remove header ${index + 1}`}
            onPress={() => onChange(rows.filter((row) => row.id !== id))}
          />
        </div>
      ))}
      <div className="row">
        <Button
          icon="plus"
          isDisabled={rows.length >= mostHeaders}
          onPress={() => onChange([...rows, { id: nextId, name: "", value: "" }])}
        >
          Add a header
        </Button>
        <span className="small muted">
          Values are encrypted, and shown as ****, which keeps what is stored.
        </span>
      </div>
      <FieldErrors errors={errors} />
    </fieldset>
  );
}
