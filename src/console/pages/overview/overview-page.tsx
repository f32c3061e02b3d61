import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function OverviewPage(): JSX.Element {
  return <Page title="Overview">{null}</Page>;
}
