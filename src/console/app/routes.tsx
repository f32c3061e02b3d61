import { lazy, type ComponentType } from "react";
import { LoadError } from "../api/api-error.ts";
import type { IconName } from "../parts/icon.tsx";

interface Section {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly component: ComponentType;
}

/** Creates a section, whose icon has its name. Its pages are loaded on first use. */
function section(name: IconName, load: () => Promise<ComponentType>): Section {
  const component = lazy(async () => {
    try {
      return { default: await load() };
    } catch (error) {
      throw new LoadError(error);
    }
  });
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return { path: name === "overview" ? "/" : `/${name}`, title, icon: name, component };
}

/** The sections of the console. Only admins get a link to `admin`. */
export const sections: readonly Section[] = [
  section("overview", async () => (await import("../pages/overview/overview-page.tsx")).OverviewPage),
  section("resources", async () => (await import("../pages/resources/resources-page.tsx")).ResourcesPage),
  section("webhooks", async () => (await import("../pages/webhooks/webhooks-page.tsx")).WebhooksPage),
  section("deliveries", async () => (await import("../pages/deliveries/deliveries-page.tsx")).DeliveriesPage),
  section("events", async () => (await import("../pages/events/events-page.tsx")).EventsPage),
  section("admin", async () => (await import("../pages/admin/admin-page.tsx")).AdminPage),
];
