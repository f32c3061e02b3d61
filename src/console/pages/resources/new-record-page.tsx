import type { JSX } from "react";
import { refresh } from "../../api/query-client.ts";
import type { JsonRecord } from "../../api/types.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useRights } from "../../app/caller.ts";
import { LinkButton } from "../../parts/button.tsx";
import { useWayOn } from "../../parts/leaving.ts";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, ScopeNote } from "../../parts/state.tsx";
import { toast } from "../../parts/toast.tsx";
import { useDraft } from "./draft.ts";
import { idOf, recordPath, recordsPath } from "./record-key.ts";
import { RecordForm } from "./record-form.tsx";
import type { ResourceShape } from "./shape.ts";

export function NewRecordPage({ shape }: { readonly shape: ResourceShape }): JSX.Element {
  const { name, create } = shape;
  const draft = useDraft(create ?? [], null);
  const goOn = useWayOn();
  const rights = useRights();
  const post = usePostOnce();
  const list = recordsPath(name);
  const scope = `${name}:write`;
  const crumbs = [
    { title: "Resources", href: "/resources" },
    { title: name, href: list },
  ];
  const submit = async (): Promise<void> => {
    const record = await post<JsonRecord>(list, draft.body());
    const id = idOf(record, shape);
    toast(id === null ? "Created." : `Created ${name} ${id}.`);
    void refresh(list);
    goOn(id === null ? list : recordPath(name, id));
  };
  return (
    <Page title={`New record of ${name}`} crumbs={crumbs}>
      <Card>
        {create === null ? (
          <Empty title={`Records of ${name} cannot be created here`}>
            Its mapping file has <code>supportsCreate: false</code>, or its table is a view.
          </Empty>
        ) : !rights.has(scope) ? (
          <ScopeNote scope={scope} />
        ) : (
          <RecordForm isNew fields={create} draft={draft} submitLabel="Create" onSubmit={submit}>
            <LinkButton href={list}>Cancel</LinkButton>
          </RecordForm>
        )}
      </Card>
    </Page>
  );
}
