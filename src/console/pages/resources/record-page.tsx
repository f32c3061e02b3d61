import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { Link } from "wouter";
import { isStatus } from "../../api/api-error.ts";
import { apiAnswer, type Answer } from "../../api/client.ts";
import { queryClient, refresh } from "../../api/query-client.ts";
import type { Json, JsonRecord } from "../../api/types.ts";
import { writeVersion } from "../../api/write-version.ts";
import { useRights } from "../../app/caller.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { JsonView } from "../../parts/code.tsx";
import { useWayOn } from "../../parts/leaving.ts";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Note, QueryView } from "../../parts/state.tsx";
import { toast } from "../../parts/toast.tsx";
import { ConflictDialog, type Conflict } from "./conflict.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { useDraft } from "./draft.ts";
import { withRequired } from "./form-body.ts";
import { RecordForm } from "./record-form.tsx";
import { valueAt, type FormField } from "./form-fields.ts";
import { ShownValue } from "./shown-value.tsx";
import { labelOf, recordPath, recordQuery, recordsPath } from "./record-key.ts";
import { RecordStory } from "./record-story.tsx";
import type { ResourceShape } from "./shape.ts";
import "./resources.css";

export function RecordPage({
  shape,
  id,
}: {
  readonly shape: ResourceShape;
  readonly id: string;
}): JSX.Element {
  const { name } = shape;
  const query = useRecord(name, id);
  const [isDeleting, setDeleting] = useState(false);
  const goOn = useWayOn();
  const rights = useRights();
  const list = recordsPath(name);
  const label = query.data === undefined ? null : labelOf(query.data.data);
  const mayWrite = rights.has(`${name}:write`);
  return (
    <Page
      title={label ?? `${name} ${id}`}
      crumbs={[
        { title: "Resources", href: "/resources" },
        { title: name, href: list },
      ]}
      status={label !== null && label !== id && <span className="muted break">{id}</span>}
      actions={
        shape.canDelete && mayWrite && query.data !== undefined && !query.isError ? (
          <Button icon="trash" onPress={() => setDeleting(true)}>
            Delete
          </Button>
        ) : undefined
      }
    >
      <div className="record-grid">
        <Card title="Record">
          <QueryView query={query}>
            {(answer) =>
              shape.update === null || !mayWrite ? (
                <div className="stack">
                  <RecordFacts record={answer.data} shape={shape} fields={[]} />
                  <JsonView value={answer.data} label="The record as JSON" />
                </div>
              ) : (
                <Editor shape={shape} id={id} answer={answer} />
              )
            }
          </QueryView>
        </Card>
        <RecordStory resource={name} id={id} />
      </div>
      {isDeleting && query.data !== undefined && (
        <DeleteDialog
          resource={name}
          id={id}
          answer={query.data}
          onClose={() => setDeleting(false)}
          onDone={(said) => {
            toast(said);
            goOn(list);
          }}
        />
      )}
    </Page>
  );
}

/**
 * Reads a record with its entity tag. There is no automatic refetch, because the form and Delete
 * depend on the shown answer. An answer of an earlier visit is not shown again.
 */
function useRecord(name: string, id: string): UseQueryResult<Answer<JsonRecord>> {
  return useQuery({
    queryKey: recordQuery(name, id),
    queryFn: ({ signal }) => apiAnswer<JsonRecord>(recordPath(name, id), { signal }),
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** Shows the values of a record that are in none of the fields of a form. */
function RecordFacts({
  record,
  shape,
  fields,
}: {
  readonly record: JsonRecord;
  readonly shape: ResourceShape;
  readonly fields: readonly FormField[];
}): JSX.Element | null {
  const changeable = new Set(fields.map(({ shownAt }) => shownAt));
  const paths = shape.paths.length > 0 ? shape.paths : Object.keys(record);
  const rest = paths.filter((path) => !changeable.has(path));
  if (rest.length === 0) return null;
  return (
    <div className="record-facts">
      <Facts
        facts={Object.fromEntries(
          rest.map((path) => [
            path,
            <Fact key={path} path={path} value={valueAt(record, path)} shape={shape} />,
          ]),
        )}
      />
    </div>
  );
}

/** Shows one value; that of a reference leads to its record. */
function Fact({
  path,
  value,
  shape,
}: {
  readonly path: string;
  readonly value: Json | undefined;
  readonly shape: ResourceShape;
}): JSX.Element {
  const resource = shape.create?.find(({ shownAt }) => shownAt === path)?.resource;
  const shown = <ShownValue value={value} isExact />;
  if (resource === undefined || value === undefined || typeof value === "object") return shown;
  return <Link href={recordPath(resource, String(value))}>{shown}</Link>;
}

function GoneLine({ name }: { readonly name: string }): JSX.Element {
  return (
    <Note tone="bad" role="alert">
      <div className="stack">
        <p>This record is no longer there, so nothing was saved. What you have typed is still here.</p>
        <p>
          <LinkButton href={recordsPath(name)}>To the list of {name}</LinkButton>
        </p>
      </div>
    </Note>
  );
}

function Editor({
  shape,
  id,
  answer,
}: {
  readonly shape: ResourceShape;
  readonly id: string;
  readonly answer: Answer<JsonRecord>;
}): JSX.Element {
  const { name } = shape;
  const fields = shape.update ?? [];
  // The record with which the form began. It is replaced when the form is saved, or the other
  // version is taken.
  const [base, setBase] = useState(answer);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const draft = useDraft(fields, base.data);
  const begin = (next: Answer<JsonRecord>): void => {
    setBase(next);
    draft.reset(next.data);
    // Replaces only the shown answer: a later visit reads the record again.
    queryClient.setQueriesData({ queryKey: recordQuery(name, id), exact: true }, next);
  };
  /** Sends the changes for a version of the record, without a tag for any. JSON is unchanged. */
  const send = async (mine: JsonRecord, { data, etag }: Answer<JsonRecord>): Promise<void> => {
    const saved = await writeVersion<JsonRecord>(recordPath(name, id), etag, {
      method: "PATCH",
      body: draft.json === null ? withRequired(mine, fields, data) : mine,
    });
    begin(saved);
    toast("Saved.");
    void refresh("story", name, id);
    void refresh(recordsPath(name));
  };
  const save = async (): Promise<void> => {
    const mine = draft.body();
    if (Object.keys(mine).length === 0) {
      toast("There is nothing to save.");
      return;
    }
    try {
      await send(mine, base);
    } catch (error) {
      if (!isStatus(error, 412)) throw error;
      setConflict({ before: base.data, theirs: await apiAnswer<JsonRecord>(recordPath(name, id)), mine });
    }
  };
  return (
    <div className="stack">
      <RecordFacts record={base.data} shape={shape} fields={fields} />
      <RecordForm
        fields={fields}
        draft={draft}
        submitLabel="Save"
        gone={<GoneLine name={name} />}
        onSubmit={save}
      >
        {draft.hasChanges && <DiscardButton onPress={() => draft.reset(base.data)} />}
      </RecordForm>
      <details>
        <summary>The record as JSON</summary>
        <JsonView value={base.data} label="The record as JSON" />
      </details>
      {conflict !== null && (
        <ConflictDialog
          conflict={conflict}
          fields={fields}
          onClose={() => setConflict(null)}
          onTakeTheirs={() => {
            begin(conflict.theirs);
            setConflict(null);
          }}
          onOverwrite={async () => {
            await send(conflict.mine, { ...conflict.theirs, etag: null });
            setConflict(null);
          }}
        />
      )}
    </div>
  );
}

/** Moves the focus to the submit button, because this one disappears. */
function DiscardButton({ onPress }: { readonly onPress: () => void }): JSX.Element {
  return (
    <Button
      onPress={({ target }) => {
        target.closest("form")?.querySelector<HTMLElement>("[type=submit]")?.focus();
        onPress();
      }}
    >
      Discard
    </Button>
  );
}
