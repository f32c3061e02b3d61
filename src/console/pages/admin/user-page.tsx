import { useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { api } from "../../api/client.ts";
import { refresh } from "../../api/query-client.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/dialog.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toast.tsx";
import { TokenList } from "./token-list.tsx";
import type { User } from "./types.ts";
import { UserDialog } from "./user-dialog.tsx";
import { UserBadges } from "./users-page.tsx";

const crumbs = [{ title: "Users", href: "/admin/users" }];

export function UserPage({ id }: { readonly id: string }): JSX.Element {
  const below = `/${encodeURIComponent(id)}`;
  const query = useQuery<User>({ queryKey: ["/users", below] });
  const shown = (
    <QueryView query={query}>{(user) => <Shown user={user} path={`/users${below}`} />}</QueryView>
  );
  if (query.data !== undefined) return shown;
  return (
    <Page title="User" crumbs={crumbs}>
      {shown}
    </Page>
  );
}

function Shown({ user, path }: { readonly user: User; readonly path: string }): JSX.Element {
  const [open, setOpen] = useState<"edit" | "switch" | null>(null);
  const switchTo = async (isDisabled: boolean): Promise<void> => {
    await api(path, { method: "PUT", body: { is_disabled: isDisabled } });
    await refresh("/users");
    toast(isDisabled ? `${user.name} is disabled.` : `${user.name} is back.`);
  };
  return (
    <Page
      title={user.name}
      crumbs={crumbs}
      status={<UserBadges user={user} />}
      actions={
        <>
          <LinkButton href={`/webhooks?user_id=${user.id}`} icon="webhooks">
            Webhooks
          </LinkButton>
          <LinkButton href={`/admin/audit?subject=user:${user.id}`} icon="events">
            History
          </LinkButton>
          <Button icon="edit" onPress={() => setOpen("edit")}>
            Change
          </Button>
          <Button kind={user.is_disabled ? "plain" : "danger"} onPress={() => setOpen("switch")}>
            {user.is_disabled ? "Enable" : "Disable"}
          </Button>
        </>
      }
    >
      <Card title="User">
        <Facts
          facts={{
            Id: user.id,
            "E-mail": user.email,
            "Subject at the issuer": user.subject ?? "none: signs in with tokens",
            Created: <Time value={user.created_at} isExact />,
            Changed: <Time value={user.updated_at} isExact />,
            ...(user.disabled_at !== null && { Disabled: <Time value={user.disabled_at} isExact /> }),
          }}
        />
      </Card>
      <TokenList path={`${path}/tokens`} owner={user.name} />
      {open === "edit" && <UserDialog user={user} onClose={() => setOpen(null)} />}
      {open === "switch" && (
        <ConfirmDialog
          title={user.is_disabled ? `Enable ${user.name}?` : `Disable ${user.name}?`}
          confirmLabel={user.is_disabled ? "Enable the user" : "Disable the user"}
          isDangerous={!user.is_disabled}
          onConfirm={() => switchTo(!user.is_disabled)}
          onClose={() => setOpen(null)}
        >
          {user.is_disabled ? (
            <p>Their tokens work again, and what was held for their webhooks goes out.</p>
          ) : (
            <p>
              Their tokens get 401 at once, and their webhooks nothing more. Records stay; deliveries wait.
              Enabling the user takes it back.
            </p>
          )}
        </ConfirmDialog>
      )}
    </Page>
  );
}
