import type { JSX } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { useRights, useStats } from "../../app/caller.ts";
import { LinkButton } from "../../parts/button.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { AuditPage } from "./audit-page.tsx";
import { ConfigurationPage } from "./configuration-page.tsx";
import { DeadLettersPage } from "./dead-letters-page.tsx";
import { ResourcePage } from "./resource-page.tsx";
import { TokenList } from "./token-list.tsx";
import { UserPage } from "./user-page.tsx";
import { UsersPage } from "./users-page.tsx";
import "../../parts/tabs.css";
import "./admin.css";

const parts = [
  { path: "/admin/users", title: "Users" },
  { path: "/admin/tokens", title: "Your tokens" },
  { path: "/admin/audit", title: "Audit trail" },
  { path: "/admin/configuration", title: "Configuration" },
  { path: "/admin/dead-letters", title: "Dead letters" },
] as const;

/**
 * Shows the pages of admins: users and tokens, the audit trail, the configuration, and dead
 * letters.
 */
export function AdminPage(): JSX.Element {
  const { isAdmin } = useRights();
  const stats = useStats();
  const [path] = useLocation();
  if (stats.data === undefined)
    return (
      <Page title="Admin">
        <QueryView query={stats}>{() => null}</QueryView>
      </Page>
    );
  // Every user has tokens; the other pages are for admins.
  if (!isAdmin && path !== "/admin/tokens")
    return (
      <Page title="Admin">
        <Empty
          icon="key"
          title="This is for admins"
          action={<LinkButton href="/admin/tokens">Your own tokens</LinkButton>}
        >
          <p>
            It takes a user with the admin flag, and a token with the scope <code>admin</code> or{" "}
            <code>*</code>.
          </p>
        </Empty>
      </Page>
    );
  return (
    <div className="stack">
      {isAdmin && (
        <nav className="tab-list" aria-label="Admin">
          {parts.map(({ path: to, title }) => (
            <Link key={to} href={to} className="tab" aria-current={path.startsWith(to) ? "page" : undefined}>
              {title}
            </Link>
          ))}
        </nav>
      )}
      <Switch>
        <Route path="/admin/users" component={UsersPage} />
        <Route path="/admin/users/:id">{({ id }) => <UserPage key={id} id={id} />}</Route>
        <Route path="/admin/tokens">
          <Page title="Your tokens">
            <TokenList path="/tokens" />
          </Page>
        </Route>
        <Route path="/admin/audit" component={AuditPage} />
        <Route path="/admin/configuration" component={ConfigurationPage} />
        <Route path="/admin/configuration/:name">{({ name }) => <ResourcePage name={name} />}</Route>
        <Route path="/admin/dead-letters" component={DeadLettersPage} />
        <Route>
          <Redirect to="/admin/users" replace />
        </Route>
      </Switch>
    </div>
  );
}
