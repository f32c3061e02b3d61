import type { JSX } from "react";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import type { UrlState } from "../../parts/url-state.ts";
import type { NumberedPage } from "./types.ts";

/** Turns the pages of a list by number. */
export function NumberPager({
  page,
  url,
}: {
  readonly page: NumberedPage<unknown>;
  readonly url: UrlState;
}): JSX.Element {
  const { current_page: current, last_page: last, total } = page;
  const turn = (to: number): void => url.change({ page: String(to) }, true);
  return (
    <nav className="pager" aria-label="Pages">
      <span className="small muted">
        {total.toLocaleString("en")} in all, page {current} of {last}
      </span>
      <div className="row">
        <Button icon="left" isDisabled={current <= 1} onPress={() => turn(Math.min(current, last + 1) - 1)}>
          Previous
        </Button>
        <Button isDisabled={current >= last} onPress={() => turn(current + 1)}>
          Next
          <Icon name="right" />
        </Button>
      </div>
    </nav>
  );
}
