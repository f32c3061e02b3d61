import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { Button as AriaButton } from "react-aria-components/Button";
import { ComboBox } from "react-aria-components/ComboBox";
import { Input } from "react-aria-components/Input";
import { ListBox, ListBoxItem } from "react-aria-components/ListBox";
import { Popover } from "react-aria-components/Popover";
import { Link } from "wouter";
import type { JsonRecord } from "../../api/types.ts";
import { Icon } from "../../parts/icon.tsx";
import { Field, type FieldProps } from "../../parts/field.tsx";
import { idOf, labelOf, recordPath, recordsPath } from "./record-key.ts";
import { useShapes, type ResourceShape } from "./shape.ts";

const mostShown = 20;

interface Choice {
  readonly id: string;
  readonly title: string;
}

/**
 * Chooses a record of another resource, by a search or by its id. Arrow keys go through the
 * results.
 */
export function RelationPicker({
  resource,
  value,
  onChange,
  ...field
}: FieldProps & {
  readonly resource: string;
  /** Id of the record; "" for none. */
  readonly value: string;
  readonly onChange: (id: string) => void;
}): JSX.Element {
  const shape = useShapes().data?.get(resource);
  const [text, setText] = useState<string | null>(null);
  // The last choice. Its title is shown at once, because the list would otherwise open again.
  const [picked, setPicked] = useState<Choice | null>(null);
  // A text that is being typed is not an id yet.
  const settled = text === null ? value : "";
  const chosen = useTitle(resource, settled);
  const shown = text ?? (picked?.id === value ? picked.title : (chosen ?? value));
  const found = useFound(shape, text ?? "");
  const take = (typed: string): void => {
    setPicked(null);
    onChange(found.find(({ title }) => title === typed.trim())?.id ?? typed.trim());
  };
  return (
    <Field {...field} hint={hintOf(field.hint, resource, settled)}>
      {(control) => (
        <ComboBox
          aria-label={field.label}
          allowsCustomValue
          allowsEmptyCollection
          menuTrigger="input"
          items={found}
          inputValue={shown}
          onInputChange={(next) => {
            // The field also reports text that it has set itself.
            if (next === shown || next === picked?.title) return;
            setText(next);
            // Takes the text at once, because Enter sends the form without leaving the field.
            take(next);
          }}
          onChange={(key) => {
            if (key === null) return;
            setPicked(found.find(({ id }) => id === String(key)) ?? null);
            onChange(String(key));
            setText(null);
          }}
          onBlur={() => {
            setText(null);
            // Takes the text again, because its title may have been found meanwhile.
            if (text !== null && text !== picked?.title) take(text);
          }}
        >
          <div className="picker">
            <Input
              className="input"
              dir="auto"
              placeholder={`Search ${resource}, or type an id`}
              {...control}
            />
            <AriaButton className="picker-open" aria-label={`Show ${resource}`}>
              <Icon name="open" />
            </AriaButton>
          </div>
          <Found />
        </ComboBox>
      )}
    </Field>
  );
}

function Found(): JSX.Element {
  return (
    <Popover className="popover picker-popover" offset={4}>
      <ListBox<Choice>
        className="menu picker-list"
        renderEmptyState={() => <p className="menu-title">Nothing found. An id can be typed as it is.</p>}
      >
        {({ id, title }) => (
          <ListBoxItem id={id} textValue={title} className="menu-item">
            <bdi>{title}</bdi>
          </ListBoxItem>
        )}
      </ListBox>
    </Popover>
  );
}

function hintOf(hint: FieldProps["hint"], resource: string, value: string): JSX.Element {
  return (
    <>
      {hint !== undefined && <>{hint} · </>}
      {value === "" ? (
        <>One of {resource}</>
      ) : (
        <Link href={recordPath(resource, value)}>
          Open {resource} {value}
        </Link>
      )}
    </>
  );
}

/** Searches a resource. Returns the first records of a resource without search. */
function useFound(shape: ResourceShape | undefined, text: string): readonly Choice[] {
  const query = new URLSearchParams({ cursor: "", per_page: String(mostShown) });
  if (shape?.isSearchable === true && text !== "") query.set("search", text.slice(0, 100));
  const { data } = useQuery<{ readonly data: readonly JsonRecord[] }>({
    queryKey: [recordsPath(shape?.name ?? ""), `?${query}`],
    enabled: shape !== undefined,
    placeholderData: keepPreviousData,
  });
  if (shape === undefined) return [];
  return (data?.data ?? []).flatMap((record) => {
    const id = idOf(record, shape);
    return id === null ? [] : [{ id, title: titleOf(record, id) }];
  });
}

/** Reads the title of the chosen record; undefined while it is unknown, or may not be read. */
function useTitle(resource: string, id: string): string | undefined {
  const { data } = useQuery<JsonRecord>({
    queryKey: [recordsPath(resource), `/${encodeURIComponent(id)}`],
    enabled: id !== "",
    staleTime: 60_000,
  });
  return data === undefined ? undefined : titleOf(data, id);
}

function titleOf(record: JsonRecord, id: string): string {
  const label = labelOf(record);
  return label === null ? id : `${label} (${id})`;
}
