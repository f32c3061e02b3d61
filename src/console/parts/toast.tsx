import type { JSX } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { createStore } from "./store.ts";
import "./toast.css";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

const shownMilliseconds = 6_000;

let lastId = 0;
const toasts = createStore<readonly Toast[]>([]);

/** Shows a message for a few seconds. Errors belong where they happened. */
export function toast(text: string, { isBad = false }: { readonly isBad?: boolean } = {}): void {
  const id = ++lastId;
  toasts.set([...toasts.get().slice(-2), { id, text, isBad }]);
  setTimeout(() => dismiss(id), shownMilliseconds);
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((each) => each.id !== id));
}

export function Toasts(): JSX.Element {
  return (
    <div className="toasts" role="status">
      {toasts.useValue().map(({ id, text, isBad }) => (
        <div key={id} className={`toast${isBad ? " bad" : ""}`}>
          <Icon name={isBad ? "alert" : "check"} />
          <span className="break">{text}</span>
          <Button kind="quiet" icon="cross" aria-label="Dismiss" onPress={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
