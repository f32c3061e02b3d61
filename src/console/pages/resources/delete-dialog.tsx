import { useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { isGone, isStatus } from "../../api/api-error.ts";
import { apiAnswer, type Answer } from "../../api/client.ts";
import { queryClient, refresh } from "../../api/query-client.ts";
import type { JsonRecord } from "../../api/types.ts";
import { useResources } from "../../api/use-resources.ts";
import { writeVersion } from "../../api/write-version.ts";
import { JsonView } from "../../parts/code.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { labelOf, recordPath, recordQuery, recordsPath } from "./record-key.ts";

/** Asks before a delete. Shows its effect and the webhooks that it notifies. */
export function DeleteDialog({
  resource,
  id,
  answer,
  onDone,
  onClose,
}: {
  readonly resource: string;
  readonly id: string;
  /** The record as the page shows it, with its entity tag, so that no newer version is deleted. */
  readonly answer: Answer<JsonRecord>;
  /** Called with a message when the record is deleted or already gone. */
  readonly onDone: (said: string) => void;
  readonly onClose: () => void;
}): JSX.Element {
  // The record after others have changed it. It is only deleted once it is shown.
  const [changed, setChanged] = useState<Answer<JsonRecord> | null>(null);
  const { data: shown } = changed ?? answer;
  // A `transform` in code may show the time of day: no version would ever match.
  const etag = changed === null ? answer.etag : null;
  const label = labelOf(shown);
  const tells = useResources()
    .data?.find(({ name }) => name === resource)
    ?.triggers.includes("on_delete");
  return (
    <ConfirmDialog
      title={`Delete ${resource} ${id}?`}
      confirmLabel="Delete the record"
      onClose={onClose}
      onConfirm={async () => {
        let said = `Deleted ${resource} ${id}.`;
        try {
          await writeVersion(recordPath(resource, id), etag, { method: "DELETE" });
        } catch (error) {
          if (isStatus(error, 412)) setChanged(await apiAnswer<JsonRecord>(recordPath(resource, id)));
          if (!isGone(error)) throw error;
          said = `${resource} ${id} is no longer there.`;
        }
        queryClient.removeQueries({ queryKey: recordQuery(resource, id) });
        void refresh(recordsPath(resource));
        onDone(said);
      }}
    >
      <p className="break">
        {label === null ? "The record" : <strong>{label}</strong>} is removed from its table. This cannot be
        undone.
      </p>
      {changed !== null && <JsonView value={shown} label="The record as it is now" />}
      {tells === true ? (
        <Listening resource={resource} />
      ) : (
        tells === false && <p>No webhook is notified: {resource} has no events of deletes.</p>
      )}
    </ConfirmDialog>
  );
}

function Listening({ resource }: { readonly resource: string }): JSX.Element {
  const filter = `filter[is_active]=true&filter[resource][in]=${resource},*&filter[events][has]=on_delete`;
  const { data } = useQuery<{ readonly total: number }>({ queryKey: ["/webhooks", `?${filter}&per_page=1`] });
  const own = data?.total;
  return (
    <p>
      Webhooks that listen for deletes get an event with the record as it was
      {own === undefined ? "." : `, ${["none", "one"][own] ?? own} of your own among them.`}
    </p>
  );
}
