import { useSyncExternalStore } from "react";

/** A value outside of the components, which show each change of it. */
interface Store<T> {
  readonly get: () => T;
  readonly set: (next: T) => void;
  /** Returns the value to a component, which is shown again after each change. */
  readonly useValue: () => T;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  const get = (): T => value;
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get,
    set: (next) => {
      value = next;
      for (const listener of listeners) listener();
    },
    useValue: () => useSyncExternalStore(subscribe, get),
  };
}
