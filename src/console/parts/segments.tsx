import type { JSX } from "react";
import { ToggleButton } from "react-aria-components/ToggleButton";
import { ToggleButtonGroup } from "react-aria-components/ToggleButtonGroup";
import "./segments.css";

/** Chooses one of a few options, all of which are shown. Arrow keys go from one to the next. */
export function Segments<Id extends string>({
  label,
  options,
  selected,
  onSelect,
}: {
  readonly label: string;
  readonly options: readonly (readonly [id: Id, title: string])[];
  readonly selected: Id;
  readonly onSelect: (id: Id) => void;
}): JSX.Element {
  return (
    <ToggleButtonGroup
      className="segments"
      aria-label={label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[selected]}
      onSelectionChange={(keys) => {
        // The event also fires when the selected option is pressed.
        for (const key of keys) if (key !== selected) onSelect(key as Id);
      }}
    >
      {options.map(([id, title]) => (
        <ToggleButton key={id} id={id} className="segment">
          {title}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}
