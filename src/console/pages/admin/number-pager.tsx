import type { JSX } from "react";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { goToListHead } from "../../parts/list-head.ts";
import type { UrlState } from "../../parts/url-state.ts";
import type { NumberedPage } from "./types.ts";

/** Shows the buttons that turn the numbered pages of a list. */
export function NumberPager({
  page,
  url,
}: {
  readonly page: NumberedPage<unknown>;
  readonly url: UrlState;
}): JSX.Element {
  const { current_page: current, last_page: last, total } = page;
  const turn = (to: number, button: Element): void => {
    url.change({ page: String(to) }, true);
    goToListHead(button);
  };
  return (
    <nav className="pager" aria-label="Pages">
      <span className="small muted">
        {total.toLocaleString("en")} in all, page {current} of {last}
      </span>
      <div className="row">
        <Button
          icon="left"
          isDisabled={current <= 1}
          onPress={({ target }) => turn(Math.min(current, last + 1) - 1, target)}
        >
          Previous
        </Button>
        <Button isDisabled={current >= last} onPress={({ target }) => turn(current + 1, target)}>
          Next
          <Icon name="right" />
        </Button>
      </div>
    </nav>
  );
}
