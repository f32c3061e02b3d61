import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { JSX } from "react";
import { api, type Answer } from "../../api/client.ts";
import type { JsonRecord } from "../../api/types.ts";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { labelOf, recordPath } from "./record-key.ts";
import { useResources } from "./resource-list.tsx";

interface Subscription {
  readonly resource: string;
  readonly events: readonly string[];
  readonly is_active: boolean;
}

/** Says what a delete does, and which webhooks hear of it, before it is done. */
export function DeleteDialog({
  resource,
  id,
  answer,
  onDeleted,
  onClose,
}: {
  readonly resource: string;
  readonly id: string;
  readonly answer: Answer<JsonRecord>;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
}): JSX.Element {
  const queries = useQueryClient();
  const label = labelOf(answer.data);
  const tells = useResources()
    .data?.find(({ name }) => name === resource)
    ?.triggers.includes("on_delete");
  return (
    <ConfirmDialog
      title={`Delete ${resource} ${id}?`}
      confirmLabel="Delete the record"
      onClose={onClose}
      onConfirm={async () => {
        await api(recordPath(resource, id), {
          method: "DELETE",
          ...(answer.etag === null ? {} : { headers: { "If-Match": answer.etag } }),
        });
        queries.removeQueries({ queryKey: ["record", resource, id] });
        void queries.invalidateQueries({ queryKey: [`/resources/${encodeURIComponent(resource)}`] });
        onDeleted();
      }}
    >
      <p className="break">
        {label === null ? "The record" : <strong>{label}</strong>} is removed from its table. This cannot be
        undone.
      </p>
      {tells === true ? (
        <Listening resource={resource} />
      ) : (
        tells === false && <p>No webhook hears of it: {resource} tells nothing of deletes.</p>
      )}
    </ConfirmDialog>
  );
}

function Listening({ resource }: { readonly resource: string }): JSX.Element {
  const { data } = useQuery({
    queryKey: ["webhooks", "listening"],
    queryFn: async () => (await api<{ readonly data: readonly Subscription[] }>("/webhooks")).data,
    retry: false,
  });
  const own = data?.filter(
    (webhook) =>
      webhook.is_active &&
      (webhook.resource === resource || webhook.resource === "*") &&
      webhook.events.includes("on_delete"),
  ).length;
  return (
    <p>
      Webhooks that listen for deletes get an event with the record as it was
      {own === undefined ? "." : `, ${own === 1 ? "one" : own} of your own among them.`}
    </p>
  );
}
