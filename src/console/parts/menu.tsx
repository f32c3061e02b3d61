import type { JSX, ReactNode } from "react";
import { Menu as AriaMenu, MenuItem, MenuTrigger } from "react-aria-components/Menu";
import { Popover } from "react-aria-components/Popover";
import { Icon, type IconName } from "./icon.tsx";
import "./dialog.css";

export interface MenuAction {
  readonly title: string;
  readonly icon?: IconName;
  readonly isSelected?: boolean;
  readonly act: () => void;
}

/** Opens a list of what can be done below its button. */
export function Menu({
  trigger,
  label,
  actions,
}: {
  /** A button. */
  readonly trigger: ReactNode;
  readonly label: string;
  readonly actions: readonly MenuAction[];
}): JSX.Element {
  return (
    <MenuTrigger>
      {trigger}
      <Popover className="popover" placement="bottom end">
        <AriaMenu
          className="menu"
          aria-label={label}
          onAction={(key) => actions.find(({ title }) => title === key)?.act()}
        >
          {actions.map(({ title, icon, isSelected }) => (
            <MenuItem key={title} id={title} textValue={title} className="menu-item">
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
