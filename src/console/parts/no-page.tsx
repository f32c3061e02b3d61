import type { JSX } from "react";
import { Link } from "wouter";
import { Card, Page } from "./page.tsx";
import { Empty } from "./state.tsx";

/** Shown at every unknown address. */
export function NoPage(): JSX.Element {
  return (
    <Page title="No such page">
      <Card>
        <Empty title="There is no page at this address" action={<Link href="/">To the overview</Link>} />
      </Card>
    </Page>
  );
}
