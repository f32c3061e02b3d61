import { useState, type JSX } from "react";
import { faultsOf } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import { refresh } from "../../api/query-client.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useWrite } from "../../api/use-write.ts";
import { FormDialog } from "../../parts/dialog.tsx";
import { CheckField, TextField } from "../../parts/field.tsx";
import { formQuestion } from "../../parts/leaving.ts";
import type { User } from "./types.ts";

export function UserDialog({
  user,
  onSaved,
  onClose,
}: {
  readonly user?: User;
  readonly onSaved?: (user: User) => void;
  readonly onClose: () => void;
}): JSX.Element {
  // The values when the form was opened. Fields that another admin changes meanwhile are not sent
  // back.
  const [start] = useState({
    name: user?.name ?? "",
    email: user?.email ?? "",
    is_admin: user?.is_admin ?? false,
  });
  const [draft, setDraft] = useState(start);
  const changes = Object.fromEntries(
    Object.entries(draft).filter(([name, value]) => value !== start[name as keyof typeof start]),
  );
  const post = usePostOnce();
  const write = useWrite({
    mutationFn: () =>
      user === undefined
        ? post<User>("/users", draft)
        : api<User>(`/users/${user.id}`, { method: "PUT", body: changes }),
    onSuccess: async (saved) => {
      onClose();
      await refresh("/users");
      onSaved?.(saved);
    },
  });
  const isTyped = Object.keys(changes).length > 0;
  return (
    <FormDialog
      title={user === undefined ? "New user" : `Change ${user.name}`}
      submitLabel={user === undefined ? "Create the user" : "Save"}
      fields={["name", "email"]}
      write={write}
      question={isTyped ? formQuestion : null}
      onClose={onClose}
    >
      <TextField
        label="Name"
        isRequired
        value={draft.name}
        onChange={(name) => setDraft({ ...draft, name })}
        errors={faultsOf(write.error, "name")}
        autoFocus
      />
      <TextField
        label="E-mail"
        type="email"
        isRequired
        value={draft.email}
        onChange={(email) => setDraft({ ...draft, email })}
        errors={faultsOf(write.error, "email")}
        hint="Names the user; nothing is sent to it."
      />
      <CheckField
        label="Admin"
        hint="Sees and changes everything, with tokens that have the scope admin or *."
        value={draft.is_admin}
        onChange={(is_admin) => setDraft({ ...draft, is_admin })}
      />
    </FormDialog>
  );
}
