import { useState, type JSX } from "react";
import { api } from "../../api/client.ts";
import { useWrite } from "../../api/use-write.ts";
import { FormDialog } from "../../parts/dialog.tsx";
import { CheckField, TextField } from "../../parts/field.tsx";
import { formQuestion } from "../../parts/leaving.ts";
import type { User } from "./types.ts";

/** Makes a user, or changes one. */
export function UserDialog({
  user,
  onSaved,
  onClose,
}: {
  readonly user?: User;
  readonly onSaved: (user: User) => unknown;
  readonly onClose: () => void;
}): JSX.Element {
  const [name, setName] = useState(user?.name ?? "");
  const [email, setEmail] = useState(user?.email ?? "");
  const [isAdmin, setAdmin] = useState(user?.is_admin ?? false);
  const write = useWrite({
    mutationFn: () => {
      const body = { name, email, is_admin: isAdmin };
      return user === undefined
        ? api<User>("/users", { method: "POST", body })
        : api<User>(`/users/${user.id}`, { method: "PUT", body });
    },
    onSuccess: (saved) => {
      onClose();
      return onSaved(saved);
    },
  });
  const isTyped =
    name !== (user?.name ?? "") || email !== (user?.email ?? "") || isAdmin !== (user?.is_admin ?? false);
  return (
    <FormDialog
      title={user === undefined ? "New user" : `Change ${user.name}`}
      submitLabel={user === undefined ? "Make the user" : "Save"}
      write={write}
      question={isTyped ? formQuestion : null}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <TextField
            label="Name"
            isRequired
            value={name}
            onChange={setName}
            errors={errors["name"]}
            autoFocus
          />
          <TextField
            label="E-mail"
            type="email"
            isRequired
            value={email}
            onChange={setEmail}
            errors={errors["email"]}
            hint="Names the user; nothing is sent to it."
          />
          <CheckField
            label="Admin"
            hint="Sees and changes everything, with tokens that have the scope admin or *."
            value={isAdmin}
            onChange={setAdmin}
          />
        </>
      )}
    </FormDialog>
  );
}
