import { useEffect, type JSX, type ReactNode } from "react";
import { Link } from "wouter";
import "./page.css";

interface Crumb {
  readonly title: string;
  readonly href: string;
}

/** Frames a page: its breadcrumbs, its title and its actions. The window gets the same title. */
export function Page({
  title,
  crumbs = [],
  status,
  actions,
  children,
}: {
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  /** Content beside the title, such as a badge. */
  readonly status?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}): JSX.Element {
  useEffect(() => {
    document.title = `${title} · svc`;
  }, [title]);
  return (
    <div className="stack">
      <header className="row page-head">
        <div className="page-title">
          {crumbs.length > 0 && (
            <nav className="crumbs small" aria-label="Breadcrumb">
              {crumbs.map((crumb, index) => (
                <span key={crumb.href}>
                  {index > 0 && <span aria-hidden="true">/</span>}
                  <Link href={crumb.href}>{crumb.title}</Link>
                </span>
              ))}
            </nav>
          )}
          <div className="row">
            <h1 className="break">
              <bdi>{title}</bdi>
            </h1>
            {status}
          </div>
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A part of a page on its own surface. */
export function Card({
  title,
  note,
  actions,
  isFlush = false,
  children,
}: {
  readonly title?: string;
  /** A sentence below the title. */
  readonly note?: ReactNode;
  readonly actions?: ReactNode;
  /** Whether the card has no padding, for tables. */
  readonly isFlush?: boolean;
  readonly children: ReactNode;
}): JSX.Element {
  return (
    <section className={`card${isFlush ? " flush" : ""}`} aria-label={title}>
      {title !== undefined && (
        <header className="row card-head">
          <div>
            <h2>{title}</h2>
            {note !== undefined && <p className="small muted">{note}</p>}
          </div>
          {actions !== undefined && <div className="row">{actions}</div>}
        </header>
      )}
      <div className="card-body">{children}</div>
    </section>
  );
}

/** Shows pairs of a name and a value. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }): JSX.Element {
  return (
    <dl className="facts">
      {Object.entries(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="break">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
