import type { JSX } from "react";
import { Page } from "../../parts/page.tsx";
import { TokenList } from "./token-list.tsx";

export function TokensPage(): JSX.Element {
  return (
    <Page title="Your tokens">
      <TokenList path="/tokens" />
    </Page>
  );
}
