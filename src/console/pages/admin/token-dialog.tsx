import { useState, type JSX } from "react";
import { usePostOnce } from "../../api/use-post-once.ts";
import { useResources } from "../../api/use-resources.ts";
import { useWrite } from "../../api/use-write.ts";
import { Button } from "../../parts/button.tsx";
import { CodeBlock } from "../../parts/code.tsx";
import { Dialog, FormDialog } from "../../parts/dialog.tsx";
import { CheckField, Field, SelectField, TextField } from "../../parts/field.tsx";
import { formQuestion } from "../../parts/leaving.ts";

const plain = [
  { scope: "read", hint: "Every record that the user may read." },
  { scope: "write", hint: "The same, and to change it." },
  { scope: "webhooks", hint: "Webhooks and their deliveries." },
  { scope: "admin", hint: "Users, and the rights of an admin." },
] as const;

const lives = [
  { value: "", title: "when your own token does" },
  { value: "7", title: "in 7 days" },
  { value: "30", title: "in 30 days" },
  { value: "90", title: "in 90 days" },
  { value: "365", title: "in a year" },
];

const leaveQuestion = "The token is shown this once. Leave it without having stored it?";

/** Creates a token, and shows it this once. */
export function TokenDialog({
  path,
  onMade,
  onClose,
}: {
  readonly path: string;
  readonly onMade: () => Promise<unknown>;
  readonly onClose: () => void;
}): JSX.Element {
  const [made, setMade] = useState<string | null>(null);
  if (made !== null)
    return (
      <Dialog title="The new token" isRequired question={leaveQuestion} onClose={onClose}>
        <div className="stack">
          <p>Store it now: it is shown this once, and cannot be found again.</p>
          <CodeBlock text={made} label="Token" />
        </div>
        <div className="dialog-actions">
          <Button kind="primary" onPress={onClose}>
            I have stored it
          </Button>
        </div>
      </Dialog>
    );
  const take = async (token: string): Promise<void> => {
    setMade(token);
    await onMade();
  };
  return <TokenForm path={path} onMade={take} onClose={onClose} />;
}

function TokenForm({
  path,
  onMade,
  onClose,
}: {
  readonly path: string;
  readonly onMade: (token: string) => Promise<unknown>;
  readonly onClose: () => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [isAll, setAll] = useState(true);
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set());
  const [days, setDays] = useState("");
  // Another try must be the same request, to the byte.
  const [openedAt] = useState(() => Date.now());
  const post = usePostOnce();
  const write = useWrite({
    // The answer contains a secret, so it is not cached after its page closes.
    gcTime: 0,
    mutationFn: () =>
      post<{ token: string }>(path, {
        name,
        ...(isAll ? {} : { scopes: [...scopes] }),
        ...(days === "" ? {} : { expires_at: new Date(openedAt + Number(days) * 86_400_000).toISOString() }),
      }),
    onSuccess: ({ token }) => onMade(token),
  });
  const isTyped = name !== "" || !isAll || days !== "";
  // Asks before leaving, because a token that was created but not shown cannot be used and stays
  // valid.
  const question = write.isPending ? leaveQuestion : isTyped ? formQuestion : null;
  return (
    <FormDialog
      title="New token"
      submitLabel="Make the token"
      fields={["name", "scopes", "expires_at"]}
      write={write}
      isRequired={write.isPending}
      question={question}
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
            hint="What it is for: you will find it by this."
            autoFocus
          />
          <CheckField
            label="Everything that your own token may do"
            value={isAll}
            onChange={setAll}
            hint="Otherwise choose scopes; less is safer."
          />
          {!isAll && <ScopeField scopes={scopes} onChange={setScopes} errors={errors["scopes"]} />}
          <SelectField
            label="Ends"
            value={days}
            onChange={setDays}
            options={lives}
            errors={errors["expires_at"]}
          />
        </>
      )}
    </FormDialog>
  );
}

function ScopeField({
  scopes,
  onChange,
  errors,
}: {
  readonly scopes: ReadonlySet<string>;
  readonly onChange: (scopes: ReadonlySet<string>) => void;
  readonly errors: readonly string[] | undefined;
}): JSX.Element {
  const { data } = useResources();
  const toggle = (scope: string): void => {
    const next = new Set(scopes);
    if (!next.delete(scope)) next.add(scope);
    onChange(next);
  };
  const check = (scope: string, title: string): JSX.Element => (
    <label key={scope}>
      <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} /> {title}
    </label>
  );
  return (
    <Field label="Scopes" isRequired errors={errors}>
      {(control) => (
        <div
          className="scope-list"
          role="group"
          id={control.id}
          aria-label="Scopes"
          aria-describedby={control["aria-describedby"]}
        >
          {plain.map(({ scope, hint }) => (
            <div key={scope} className="scope-row">
              {check(scope, scope)}
              <span className="small muted">{hint}</span>
            </div>
          ))}
          {data?.map(({ name }) => (
            <div key={name} className="scope-row">
              <span className="mono break">{name}</span>
              {check(`${name}:read`, "read")}
              {check(`${name}:write`, "write")}
            </div>
          ))}
        </div>
      )}
    </Field>
  );
}
