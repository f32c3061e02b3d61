import type { JSX, ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components/Button";
import { Link } from "wouter";
import { Icon, type IconName } from "./icon.tsx";
import "./button.css";

/**
 * Kind of a button. `primary` is the main action; `danger` destroys something; `quiet` has no
 * frame.
 */
type ButtonKind = "primary" | "plain" | "quiet" | "danger";

interface Look {
  readonly kind?: ButtonKind;
  readonly icon?: IconName;
  readonly children?: ReactNode;
}

interface ButtonProps extends Look, Omit<AriaButtonProps, "children" | "className" | "style"> {
  /** Whether the action is under way. The button cannot be pressed meanwhile. */
  readonly isBusy?: boolean;
}

/** A button; without children, its icon needs an `aria-label`. */
export function Button({
  kind = "plain",
  icon,
  isBusy = false,
  children,
  ...rest
}: ButtonProps): JSX.Element {
  // A disabled button would lose the focus. `isPending` of the library refers to the button by its
  // id, and still does when the button is gone.
  const quiet = isBusy ? { type: "button" as const, onPress: () => undefined, "data-pending": true } : {};
  return (
    <AriaButton {...rest} {...quiet} className={classOf(kind, children)}>
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon !== undefined && <Icon name={icon} />}
      {children}
    </AriaButton>
  );
}

/** A link that looks like a button: it leads to a page. */
export function LinkButton({
  href,
  kind = "plain",
  icon,
  children,
}: Look & { readonly href: string }): JSX.Element {
  return (
    <Link href={href} className={classOf(kind, children)}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </Link>
  );
}

function classOf(kind: ButtonKind, children: ReactNode): string {
  return `button ${kind}${children === undefined ? " only-icon" : ""}`;
}
