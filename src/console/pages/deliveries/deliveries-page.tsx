import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function DeliveriesPage(): JSX.Element {
  return <Page title="Deliveries">{null}</Page>;
}
