import type { JSX } from "react";

/** The strokes of each icon, on a grid of 16 by 16. */
const strokes = {
  overview: "M2 9h2.5l2-5.5 3 9 2-3.5H14",
  resources: "M2.5 3.5h11v9h-11zM2.5 6.5h11M6 6.5v6",
  webhooks:
    "M8 5.5 5.5 10M8 5.5a2 2 0 1 0-1.6-.8M10.5 10.5h-5M12 12.3a2 2 0 1 0-1.5-1.8M8 5.5l2.5 5M4 8.8a2 2 0 1 0 1.5 1.7",
  deliveries: "M14 2 7.5 8.5M14 2l-4 12-2.5-5.5L2 6z",
  events: "M5.5 4H14M5.5 8H14M5.5 12H14M2 4h.5M2 8h.5M2 12h.5",
  admin: "M8 2l5 2v3.6c0 3-2 5.2-5 6.4-3-1.2-5-3.4-5-6.4V4zM6 8l1.5 1.5L10.2 6.7",
  plus: "M8 3v10M3 8h10",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 13.5 13.5",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  copy: "M5.5 5.5h7.5v7.5H5.5zM10.5 3H3v7.5",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  alert: "M8 2.5 14.5 13.5h-13zM8 6.5v3.5M8 11.8v.2",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  open: "M4 6l4 4 4-4",
  refresh: "M13 8a5 5 0 1 1-1.5-3.55M13 2.5v3h-3",
  edit: "M3 13h2.5L13 5.5 10.5 3 3 10.5zM9 4.5 11.5 7",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13h6l.5-8.5",
  key: "M9.5 9.5a3.5 3.5 0 1 0-3.3-2.3L2.5 11v2.5H5V12h1.5v-1.5zM10.7 5.3h.1",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  leave: "M6 3H3v10h3M7 8h6.5M11 5.5 13.5 8 11 10.5",
  book: "M3 3h4a1.5 1.5 0 0 1 1 .5A1.5 1.5 0 0 1 9 3h4v9.5H9a1 1 0 0 0-1 .7 1 1 0 0 0-1-.7H3zM8 3.5v9.5",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
} as const;

export type IconName = keyof typeof strokes;

/** Draws an icon in the colour of the text. Screen readers skip it. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): JSX.Element {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={strokes[name]} />
    </svg>
  );
}
