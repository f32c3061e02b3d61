import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function EventsPage(): JSX.Element {
  return <Page title="Events">{null}</Page>;
}
