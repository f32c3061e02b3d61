import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function WebhooksPage(): JSX.Element {
  return <Page title="Webhooks">{null}</Page>;
}
