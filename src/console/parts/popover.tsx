import type { JSX, ReactNode } from "react";
import { Dialog as AriaDialog, DialogTrigger } from "react-aria-components/Dialog";
import { Popover } from "react-aria-components/Popover";
import { Button } from "./button.tsx";
import type { IconName } from "./icon.tsx";
import "./dialog.css";

/** A button that opens a small form below it. Escape closes it. */
export function PopoverButton({
  label,
  icon,
  children,
}: {
  readonly label: string;
  readonly icon: IconName;
  readonly children: (close: () => void) => ReactNode;
}): JSX.Element {
  return (
    <DialogTrigger>
      <Button icon={icon}>{label}</Button>
      <Popover className="popover padded" placement="bottom start">
        <AriaDialog className="stack popover-inside" aria-label={label}>
          {({ close }) => children(close)}
        </AriaDialog>
      </Popover>
    </DialogTrigger>
  );
}
