import type { JSX } from "react";
import { faultsOf } from "../../api/api-error.ts";
import type { ResourceEntry } from "../../api/types.ts";
import { useResources } from "../../api/use-resources.ts";
import { useRights } from "../../app/caller.ts";
import { TriggerBadge } from "../../parts/badge.tsx";
import { ChecksField, optionsOf, SelectField } from "../../parts/field.tsx";
import { ErrorLine } from "../../parts/state.tsx";
import type { FieldsProps } from "./draft.ts";
import { FilterField } from "./filter-field.tsx";

const serviceEvents = ["webhook.failing", "webhook.disabled", "delivery.failed"];

const meanings: Readonly<Record<string, string>> = {
  on_create: "A record is created.",
  on_update: "A field of a record changes.",
  on_delete: "A record is deleted.",
  "webhook.failing": "A webhook has had nothing but failures for long.",
  "webhook.disabled": "A webhook was switched off by the service.",
  "delivery.failed": "The attempts of a delivery are spent.",
};

/** Fields for the contents of a webhook: its resource, its events and its filter. */
export function WhatFields({
  draft,
  onChange,
  error,
  isNew,
}: FieldsProps & { readonly isNew: boolean }): JSX.Element {
  const { isAdmin } = useRights();
  const query = useResources();
  const resources = (query.data ?? []).filter(({ triggers }) => triggers.length > 0);
  const options = [
    ...(draft.resource === "" ? [{ value: "", title: "Choose one" }] : []),
    ...optionsOf(resources.map(({ name }) => name)),
    { value: "*", title: "every resource that I may read" },
    ...(isAdmin || draft.resource === "service"
      ? [{ value: "service", title: "service: what happens to webhooks and deliveries" }]
      : []),
  ];
  return (
    <>
      <ErrorLine error={query.error} />
      <SelectField
        label="Resource"
        isRequired
        hint={isNew ? "It stays: another resource needs another webhook." : "It cannot be changed."}
        disabled={!isNew}
        errors={faultsOf(error, "resource")}
        value={draft.resource}
        options={isNew ? options : optionsOf([draft.resource])}
        onChange={(resource) => onChange({ resource, events: eventsOf(resources, resource) })}
      />
      {draft.resource !== "" && (
        <ChecksField
          label="Events"
          options={eventsOf(resources, draft.resource).map((event) => ({
            value: event,
            title: <TriggerBadge trigger={event} />,
            hint: meanings[event],
          }))}
          chosen={draft.events}
          errors={faultsOf(error, "events")}
          onChange={(events) => onChange({ events })}
        />
      )}
      {draft.resource !== "" && <FilterField draft={draft} onChange={onChange} error={error} />}
    </>
  );
}

function eventsOf(resources: readonly ResourceEntry[], name: string): readonly string[] {
  const own = resources.find((resource) => resource.name === name);
  if (own !== undefined) return own.triggers;
  if (name === "service") return serviceEvents;
  if (name !== "*") return [];
  const all = new Set(resources.flatMap(({ triggers }) => triggers));
  return ["on_create", "on_update", "on_delete"].filter((trigger) => all.has(trigger));
}
