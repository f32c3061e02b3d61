import { useState, type JSX } from "react";
import { faultsOf } from "../../api/api-error.ts";
import { refresh } from "../../api/query-client.ts";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useResources } from "../../api/use-resources.ts";
import { useWrite } from "../../api/use-write.ts";
import { CodeBlock } from "../../parts/code.tsx";
import { FormDialog } from "../../parts/dialog.tsx";
import { CheckField, ChecksField, SelectField, TextField } from "../../parts/field.tsx";
import { formQuestion } from "../../parts/leaving.ts";

const plain = [
  { value: "read", hint: "Every record that the user may read." },
  { value: "write", hint: "The same, and to change it." },
  { value: "webhooks", hint: "Webhooks and their deliveries." },
  { value: "admin", hint: "Users, and the rights of an admin." },
];

const lives = [
  { value: "", title: "when your own token does" },
  { value: "7", title: "in 7 days" },
  { value: "30", title: "in 30 days" },
  { value: "90", title: "in 90 days" },
  { value: "365", title: "in a year" },
];

// A token that was created but not shown cannot be used and stays valid.
const once = {
  title: "The new token",
  question: "The token is shown this once. Leave it without having stored it?",
};

export function TokenDialog({
  path,
  onClose,
}: {
  readonly path: string;
  readonly onClose: () => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [isAll, setAll] = useState(true);
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const allScopes = useScopes();
  const [days, setDays] = useState("");
  // A retry must be the same request, byte by byte.
  const [openedAt] = useState(() => Date.now());
  const post = usePostOnce();
  const write = useWrite({
    // The answer contains a secret, so it is not cached after its page closes.
    gcTime: 0,
    mutationFn: () =>
      post<{ token: string }>(path, {
        name,
        ...(isAll ? {} : { scopes }),
        ...(days === "" ? {} : { expires_at: new Date(openedAt + Number(days) * 86_400_000).toISOString() }),
      }),
    // The token is shown at once, whether or not the list can be read.
    onSuccess: () => void refresh(path),
  });
  const isTyped = name !== "" || !isAll || days !== "";
  return (
    <FormDialog
      title="New token"
      submitLabel="Create the token"
      fields={["name", "scopes", "expires_at"]}
      write={write}
      question={isTyped ? formQuestion : null}
      once={{ ...once, shown: write.data && <Made token={write.data.token} /> }}
      onClose={onClose}
    >
      <TextField
        label="Name"
        isRequired
        value={name}
        onChange={setName}
        errors={faultsOf(write.error, "name")}
        hint="What it is for: you will find it by this."
        autoFocus
      />
      <CheckField
        label="Everything that your own token may do"
        value={isAll}
        onChange={setAll}
        hint="Otherwise choose scopes; less is safer."
      />
      {!isAll && (
        <ChecksField
          label="Scopes"
          options={allScopes}
          chosen={scopes}
          onChange={setScopes}
          errors={faultsOf(write.error, "scopes")}
        />
      )}
      <SelectField
        label="Expires"
        value={days}
        onChange={setDays}
        options={lives}
        errors={faultsOf(write.error, "expires_at")}
      />
    </FormDialog>
  );
}

function Made({ token }: { readonly token: string }): JSX.Element {
  return (
    <>
      <p>Store it now: it is shown this once, and cannot be found again.</p>
      <CodeBlock isWhole text={token} label="Token" />
    </>
  );
}

/** Returns the scopes to choose from: the general ones, and those of each resource. */
function useScopes(): readonly { readonly value: string; readonly hint?: string }[] {
  const { data = [] } = useResources();
  return [...plain, ...data.flatMap(({ name }) => [{ value: `${name}:read` }, { value: `${name}:write` }])];
}
