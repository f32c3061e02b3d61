import type { JSX } from "react";
import { Route, Switch } from "wouter";
import { NoPage } from "../../parts/no-page.tsx";
import { EventListPage } from "./event-list.tsx";
import { EventPage } from "./event-page.tsx";

/** Shows the section of events: the live list, and a single event. */
export function EventsPage(): JSX.Element {
  return (
    <Switch>
      <Route path="/events" component={EventListPage} />
      <Route path="/events/:uuid">{({ uuid }) => <EventPage key={uuid} uuid={uuid} />}</Route>
      <Route component={NoPage} />
    </Switch>
  );
}
