import { createStore } from "../parts/store.ts";

type Theme = "system" | "light" | "dark";

const key = "svc-console.theme";
const theme = createStore(readStored());

function readStored(): Theme {
  const stored = localStorage.getItem(key);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Applies the theme that was chosen in this browser, or the system's theme by default. */
export function applyTheme(): void {
  const chosen = theme.get();
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

export function setTheme(next: Theme): void {
  if (next === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, next);
  theme.set(next);
  applyTheme();
}

export const useTheme = theme.useValue;
