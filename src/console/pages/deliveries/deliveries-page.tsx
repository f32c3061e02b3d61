import type { JSX } from "react";
import { Route, Switch } from "wouter";
import { NoPage } from "../../parts/no-page.tsx";
import { DeliveryListPage } from "./delivery-list.tsx";
import { DeliveryPage } from "./delivery-page.tsx";
import "./deliveries.css";

/** Shows the section of deliveries: the list, and a single delivery. */
export function DeliveriesPage(): JSX.Element {
  return (
    <Switch>
      <Route path="/deliveries" component={DeliveryListPage} />
      <Route path="/deliveries/:id">{({ id }) => <DeliveryPage key={id} id={id} />}</Route>
      <Route component={NoPage} />
    </Switch>
  );
}
