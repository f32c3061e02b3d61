import { Suspense, useCallback, useEffect, useRef, type JSX } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { usePathname } from "wouter/use-browser-location";
import { Icon } from "../parts/icon.tsx";
import { cameBack } from "../parts/leaving.ts";
import { NoPage } from "../parts/no-page.tsx";
import { Loading } from "../parts/state.tsx";
import { Toasts } from "../parts/toast.tsx";
import { useRights } from "./caller.ts";
import { FaultBoundary } from "./fault-boundary.tsx";
import { Logo } from "./logo.tsx";
import { returnPath } from "./pkce.ts";
import { sections } from "./routes.tsx";
import { useSession } from "./session.ts";
import { SignedIn, SignInAgain, SignInPage } from "./sign-in.tsx";
import { UserMenu } from "./user-menu.tsx";
import "./shell.css";

/** Shows the console, or the sign-in before it. */
export function Shell(): JSX.Element {
  const { token, ended, user } = useSession();
  const [path, navigate] = useLocation();
  const goOn = useCallback((to: string) => navigate(to, { replace: true }), [navigate]);
  if (path === returnPath) return <SignedIn onDone={goOn} />;
  if (token === null && ended === null) return <SignInPage />;
  return (
    <>
      <Frame key={user} />
      <Toasts />
      {token === null && ended !== null && <SignInAgain reason={ended} />}
    </>
  );
}

function Frame(): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const [path] = useLocation();
  // Links have the raw path.
  const rawPath = usePathname();
  const last = useRef(rawPath);
  useEffect(() => {
    const from = last.current;
    if (from === rawPath) return;
    last.current = rawPath;
    // Moves the focus to the start of the new page, or after Back to the link that was followed.
    const links = cameBack() ? [...(main.current?.querySelectorAll("a") ?? [])] : [];
    const followed = links.find(({ pathname }) => pathname === from);
    if (followed !== undefined) followed.focus();
    else main.current?.focus({ preventScroll: true });
    if (!cameBack()) window.scrollTo(0, 0);
  }, [rawPath]);
  return (
    <div className="shell">
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          // The page has a base URL, so the plain link would lead to another page.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <header className="side">
        <Link href="/" className="brand">
          <Logo />
          <span>svc</span>
        </Link>
        <Navigation path={path} />
        <div className="side-foot">
          <UserMenu />
        </div>
      </header>
      <main className="content" id="main" ref={main} tabIndex={-1}>
        <FaultBoundary key={path}>
          <Suspense fallback={<Loading />}>
            <Switch>
              {sections.map(({ path: at, component: Section }) => (
                // Does not use `*?`, which stops at a line feed, because a key may contain one.
                <Route key={at} path={at === "/" ? at : new RegExp(`^${at}(/|$)`)}>
                  <Section />
                </Route>
              ))}
              <Route>
                <NoPage />
              </Route>
            </Switch>
          </Suspense>
        </FaultBoundary>
      </main>
    </div>
  );
}

function Navigation({ path }: { readonly path: string }): JSX.Element {
  const { isAdmin } = useRights();
  return (
    <nav className="nav" aria-label="Sections">
      {sections
        .filter(({ icon }) => icon !== "admin" || isAdmin)
        .map(({ path: at, title, icon }) => {
          const isHere = at === "/" ? path === "/" : path === at || path.startsWith(`${at}/`);
          return (
            <Link key={at} href={at} aria-current={isHere ? "page" : undefined}>
              <Icon name={icon} />
              {title}
            </Link>
          );
        })}
    </nav>
  );
}
