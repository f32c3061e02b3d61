import { useState, type JSX, type SubmitEvent } from "react";
import { ApiError } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import { useWrite } from "../../api/use-write.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { CheckField, TextField } from "../../parts/field.tsx";
import { formQuestion } from "../../parts/leaving.ts";
import { ErrorLine } from "../../parts/state.tsx";
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
  const { error, isPending, mutate } = useWrite({
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
  const fields = error instanceof ApiError ? error.fields : {};
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    mutate();
  };
  return (
    <Dialog
      title={user === undefined ? "New user" : `Change ${user.name}`}
      question={isTyped ? formQuestion : null}
      onClose={onClose}
    >
      <form className="stack" onSubmit={submit} noValidate>
        <TextField
          label="Name"
          isRequired
          value={name}
          onChange={setName}
          errors={fields["name"]}
          autoFocus
        />
        <TextField
          label="E-mail"
          type="email"
          isRequired
          value={email}
          onChange={setEmail}
          errors={fields["email"]}
          hint="Names the user; nothing is sent to it."
        />
        <CheckField
          label="Admin"
          hint="Sees and changes everything, with tokens that have the scope admin or *."
          value={isAdmin}
          onChange={setAdmin}
        />
        {Object.keys(fields).length === 0 && <ErrorLine error={error} />}
        <div className="dialog-actions">
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={isPending}>
            {user === undefined ? "Make the user" : "Save"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
