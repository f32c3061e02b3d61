import { useSyncExternalStore, type JSX } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import "./toast.css";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

const shownMilliseconds = 6_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

/** Shows a message for a few seconds. Errors belong where they happened. */
export function toast(text: string, { isBad = false }: { readonly isBad?: boolean } = {}): void {
  const id = ++lastId;
  set([...toasts.slice(-2), { id, text, isBad }]);
  setTimeout(() => dismiss(id), shownMilliseconds);
}

function dismiss(id: number): void {
  set(toasts.filter((each) => each.id !== id));
}

export function Toasts(): JSX.Element {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status">
      {shown.map(({ id, text, isBad }) => (
        <div key={id} className={`toast${isBad ? " bad" : ""}`}>
          <Icon name={isBad ? "alert" : "check"} />
          <span className="break">{text}</span>
          <Button kind="quiet" icon="cross" aria-label="Dismiss" onPress={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
