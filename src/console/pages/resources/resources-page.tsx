import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function ResourcesPage(): JSX.Element {
  return <Page title="Resources">{null}</Page>;
}
