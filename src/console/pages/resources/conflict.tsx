import type { JSX } from "react";
import type { Answer } from "../../api/client.ts";
import type { Json, JsonRecord } from "../../api/types.ts";
import { useWrite } from "../../api/use-write.ts";
import { Button } from "../../parts/button.tsx";
import { Value } from "../../parts/code.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorLine } from "../../parts/state.tsx";
import { valueAt, type FormField } from "./form-fields.ts";

/** Two versions of one record, of which only one can be kept. */
export interface Conflict {
  /** The record when it was opened here. */
  readonly before: JsonRecord;
  /**
   * The stored record. It is overwritten under any entity tag: a `transform` in code may show the
   * time of day, and no tag would ever match.
   */
  readonly theirs: Answer<JsonRecord>;
  /** The body that should have been sent. */
  readonly mine: JsonRecord;
}

/** Shows the fields that differ, and asks which version to keep. */
export function ConflictDialog({
  conflict,
  fields,
  onOverwrite,
  onTakeTheirs,
  onClose,
}: {
  readonly conflict: Conflict;
  readonly fields: readonly FormField[];
  readonly onOverwrite: () => Promise<void>;
  readonly onTakeTheirs: () => void;
  readonly onClose: () => void;
}): JSX.Element {
  const overwrite = useWrite({ mutationFn: onOverwrite });
  return (
    <Dialog title="Somebody changed this record in the meantime" isWide onClose={onClose}>
      <p className="muted">
        Nothing of yours was written. Overwriting sends the fields of the last column; the others stay as they
        are now.
      </p>
      <div className="compare">
        <DataTable
          label="Differences"
          rows={differencesOf(conflict, fields)}
          rowKey={({ name }) => name}
          columns={[
            { title: "Field", render: ({ name }) => <strong>{name}</strong> },
            { title: "When you opened it", render: ({ before }) => <Value value={before} isWhole /> },
            {
              title: "Now",
              render: ({ before, theirs }) => (
                <span className={isSame(before, theirs) ? undefined : "theirs"}>
                  <Value value={theirs} isWhole />
                </span>
              ),
            },
            {
              title: "Yours",
              render: ({ mine }) =>
                mine === undefined ? (
                  <span className="muted">unchanged</span>
                ) : (
                  <Value value={mine} isWhole />
                ),
            },
          ]}
        />
      </div>
      <ErrorLine error={overwrite.error} />
      <div className="row dialog-actions">
        <Button onPress={onClose}>Go on editing</Button>
        <Button onPress={onTakeTheirs}>Take theirs</Button>
        <Button kind="danger" isBusy={overwrite.isPending} onPress={() => overwrite.mutate()}>
          Overwrite with mine
        </Button>
      </div>
    </Dialog>
  );
}

interface Difference {
  readonly name: string;
  readonly before: Json | undefined;
  readonly theirs: Json | undefined;
  /** Undefined when the field is not sent. */
  readonly mine: Json | undefined;
}

/** Returns the fields that are sent, and the fields that others have changed. */
function differencesOf(
  { before, theirs: { data: theirs }, mine }: Conflict,
  fields: readonly FormField[],
): readonly Difference[] {
  const sent = Object.keys(mine).map((name) => {
    const path = fields.find((field) => field.name === name)?.shownAt ?? name;
    return { name, path };
  });
  const others = Object.keys(theirs)
    .filter((name) => name !== "updated_at" && !isSame(before[name], theirs[name]))
    .filter((name) => !sent.some(({ path }) => path === name || path.startsWith(`${name}.`)))
    .map((name) => ({ name, path: name }));
  return [...sent, ...others].map(({ name, path }) => ({
    name,
    before: valueAt(before, path),
    theirs: valueAt(theirs, path),
    mine: mine[name],
  }));
}

/** Returns whether two values are the same JSON. */
export function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
