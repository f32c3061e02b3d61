import { lazy, type ComponentType } from "react";
import { LoadError } from "../api/api-error.ts";
import type { IconName } from "../parts/icon.tsx";

/** A section of the console. Its pages are loaded on first use. */
export interface Section {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly isForAdmins?: boolean;
  readonly component: ComponentType;
}

function page(load: () => Promise<ComponentType>): ComponentType {
  return lazy(async () => {
    try {
      return { default: await load() };
    } catch (error) {
      throw new LoadError(error);
    }
  });
}

export const sections: readonly Section[] = [
  {
    path: "/",
    title: "Overview",
    icon: "overview",
    component: page(async () => (await import("../pages/overview/overview-page.tsx")).OverviewPage),
  },
  {
    path: "/resources",
    title: "Resources",
    icon: "resources",
    component: page(async () => (await import("../pages/resources/resources-page.tsx")).ResourcesPage),
  },
  {
    path: "/webhooks",
    title: "Webhooks",
    icon: "webhooks",
    component: page(async () => (await import("../pages/webhooks/webhooks-page.tsx")).WebhooksPage),
  },
  {
    path: "/deliveries",
    title: "Deliveries",
    icon: "deliveries",
    component: page(async () => (await import("../pages/deliveries/deliveries-page.tsx")).DeliveriesPage),
  },
  {
    path: "/events",
    title: "Events",
    icon: "events",
    component: page(async () => (await import("../pages/events/events-page.tsx")).EventsPage),
  },
  {
    path: "/admin",
    title: "Admin",
    icon: "admin",
    isForAdmins: true,
    component: page(async () => (await import("../pages/admin/admin-page.tsx")).AdminPage),
  },
];
