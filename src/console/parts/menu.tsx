import type { JSX, ReactNode } from "react";
import { Menu as AriaMenu, MenuItem, MenuTrigger } from "react-aria-components/Menu";
import { Popover } from "react-aria-components/Popover";
import { Icon, type IconName } from "./icon.tsx";
import "./dialog.css";

interface MenuAction {
  readonly title: string;
  readonly icon?: IconName;
  readonly isSelected?: boolean;
  readonly act: () => void;
}

/** A button that opens a list of actions below it. */
export function Menu({
  trigger,
  label,
  actions,
}: {
  /** The button that opens the menu. */
  readonly trigger: ReactNode;
  readonly label: string;
  readonly actions: readonly MenuAction[];
}): JSX.Element {
  return (
    <MenuTrigger>
      {trigger}
      <Popover className="popover" placement="bottom end">
        <AriaMenu className="menu" aria-label={label}>
          {actions.map(({ title, icon, isSelected, act }) => (
            <MenuItem
              key={title}
              textValue={title}
              aria-label={isSelected === true ? `${title}, chosen` : undefined}
              className="menu-item"
              onAction={act}
            >
              {icon !== undefined && <Icon name={icon} />}
              <span>{title}</span>
              {isSelected === true && <Icon name="check" />}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
