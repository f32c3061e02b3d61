import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";

export function AdminPage(): JSX.Element {
  return <Page title="Admin">{null}</Page>;
}
