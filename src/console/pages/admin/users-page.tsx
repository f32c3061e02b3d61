import { useState, type JSX } from "react";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { FilterBar, TextFilter } from "../../parts/filters.tsx";
import { useWayOn } from "../../parts/leaving.ts";
import { ListTable } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toast.tsx";
import { useList } from "../../parts/use-list.ts";
import type { User } from "./types.ts";
import { UserDialog } from "./user-dialog.tsx";

export function UsersPage(): JSX.Element {
  const query = useList<User>("/users");
  const [isMaking, setMaking] = useState(false);
  const goOn = useWayOn();
  const create = (
    <Button kind="primary" icon="plus" onPress={() => setMaking(true)}>
      New user
    </Button>
  );
  return (
    <Page title="Users" actions={create}>
      <Card isFlush>
        <FilterBar>
          <TextFilter label="Name contains" name="filter[name][contains]" />
          <TextFilter label="E-mail contains" name="filter[email][contains]" />
        </FilterBar>
        <ListTable
          label="Users"
          query={query}
          rowKey={({ id }) => id}
          rowHref={({ id }) => `/admin/users/${id}`}
          columns={[
            { title: "Name", sortBy: "name", render: ({ name }) => name },
            { title: "E-mail", sortBy: "email", render: ({ email }) => email },
            { title: "State", render: (user) => <UserBadges user={user} /> },
            { title: "Id", sortBy: "id", isNumeric: true, render: ({ id }) => id },
            { title: "Created", render: (user) => <Time value={user.created_at} /> },
          ]}
          empty={<Empty title="No user on this page" action={create} />}
        />
      </Card>
      {isMaking && (
        <UserDialog
          onClose={() => setMaking(false)}
          onSaved={(user) => {
            toast(`${user.name} was created. Next, create a token for them.`);
            goOn(`/admin/users/${user.id}`);
          }}
        />
      )}
    </Page>
  );
}

/** Shows whether a user is active, and the admin flag. */
export function UserBadges({ user }: { readonly user: User }): JSX.Element {
  return (
    <span className="row">
      {user.is_disabled ? <Badge tone="warn">disabled</Badge> : <Badge tone="good">active</Badge>}
      {user.is_admin && <Badge tone="accent">admin</Badge>}
    </span>
  );
}
