import type { JSX } from "react";

export function Logo(): JSX.Element {
  return (
    <svg width="28" height="28" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent-solid)" />
      <path
        d="M9 12h9a5 5 0 0 1 0 10H12M9 12l4-4M9 12l4 4"
        fill="none"
        stroke="#fff"
        strokeWidth="2.6"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
