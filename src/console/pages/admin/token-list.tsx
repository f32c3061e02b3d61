import { useState, type JSX } from "react";
import { api } from "../../api/client.ts";
import { refresh } from "../../api/query-client.ts";
import { Badge, StatusBadge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { ListTable } from "../../parts/list-table.tsx";
import { Card } from "../../parts/page.tsx";
import { Empty } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toast.tsx";
import { useList } from "../../parts/use-list.ts";
import { TokenDialog } from "./token-dialog.tsx";
import type { Token } from "./types.ts";

/**
 * Lists, creates and revokes tokens.
 *
 * @param path `/tokens` of the caller, or those of a user.
 */
export function TokenList({ path, owner }: { readonly path: string; readonly owner?: string }): JSX.Element {
  const query = useList<Token>(path);
  const [isMaking, setMaking] = useState(false);
  const [revoked, setRevoked] = useState<Token | null>(null);
  const create = (
    <Button kind="primary" icon="plus" onPress={() => setMaking(true)}>
      New token
    </Button>
  );
  return (
    <Card
      title="Tokens"
      note="A token is shown once, when it is created. Only its hash is kept."
      actions={create}
      isFlush
    >
      <ListTable
        label="Tokens"
        query={query}
        rowKey={({ id }) => id}
        columns={[
          { title: "Name", render: ({ name }) => name },
          {
            title: "Scopes",
            render: ({ scopes }) => (
              <span className="row wrapped">
                {scopes.map((scope) => (
                  <Badge key={scope}>{scope === "*" ? "* everything" : scope}</Badge>
                ))}
              </span>
            ),
          },
          { title: "State", render: (token) => <StatusBadge status={stateOf(token)} /> },
          { title: "Last used", render: (token) => <Time value={token.last_used_at} /> },
          { title: "Expires", render: (token) => <Time value={token.expires_at} /> },
          { title: "Created", render: (token) => <Time value={token.created_at} /> },
          {
            title: "Actions",
            render: (token) =>
              stateOf(token) === "active" ? (
                <Button kind="quiet" aria-label={`Revoke ${token.name}`} onPress={() => setRevoked(token)}>
                  Revoke
                </Button>
              ) : null,
          },
        ]}
        empty={
          <Empty icon="key" title="No token yet" action={create}>
            <p>{owner === undefined ? "You have" : `${owner} has`} nothing to call the API with.</p>
          </Empty>
        }
      />
      {isMaking && <TokenDialog path={path} onClose={() => setMaking(false)} />}
      {revoked !== null && (
        <ConfirmDialog
          title={`Revoke ${revoked.name}?`}
          confirmLabel="Revoke the token"
          onClose={() => setRevoked(null)}
          onConfirm={async () => {
            await api(`${path}/${revoked.id}`, { method: "DELETE" });
            await refresh(path);
            toast(`${revoked.name} is revoked.`);
          }}
        >
          <p>
            Requests with it get 401 at once, as do those with tokens that were made with it. This cannot be
            undone: make a new one instead.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  );
}

function stateOf({ revoked_at: revoked, expires_at: expires }: Token): "active" | "revoked" | "expired" {
  if (revoked !== null) return "revoked";
  return expires !== null && Date.parse(expires) <= Date.now() ? "expired" : "active";
}
