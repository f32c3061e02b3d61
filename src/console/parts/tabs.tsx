import type { JSX, ReactNode } from "react";
import { Tab as AriaTab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components/Tabs";
import "./tabs.css";

interface TabPart {
  readonly id: string;
  readonly title: ReactNode;
  readonly content: ReactNode;
}

/** Shows one of several parts. Arrow keys go from tab to tab. */
export function Tabs({
  label,
  tabs,
}: {
  readonly label: string;
  readonly tabs: readonly TabPart[];
}): JSX.Element {
  return (
    <AriaTabs className="stack">
      <TabList className="tab-list" aria-label={label}>
        {tabs.map(({ id, title }) => (
          <AriaTab key={id} id={id} className="tab">
            {title}
          </AriaTab>
        ))}
      </TabList>
      {tabs.map(({ id, content }) => (
        <TabPanel key={id} id={id} className="tab-panel">
          {content}
        </TabPanel>
      ))}
    </AriaTabs>
  );
}
