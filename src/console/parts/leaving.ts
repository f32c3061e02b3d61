import { useCallback, useEffect, useRef } from "react";
import { useLocation, type AroundNavHandler } from "wouter";

interface Guard {
  readonly question: string;
}

/** Pages with input or secrets that leaving would lose. */
const guards = new Set<Guard>();
/** The address of the shown page. Back changes the browser's address before its event arrives. */
let here = "";
let isBack = false;

/** Returns whether Back or Forward led here. The browser then restores the scroll position. */
export function cameBack(): boolean {
  return isBack;
}

/** Asks a question before the page is left: by a link, by Back, by closing it. */
export function useLeaveQuestion(question: string | null): void {
  useEffect(() => {
    if (question === null) return undefined;
    const guard = { question };
    guards.add(guard);
    here = location.href;
    window.addEventListener("beforeunload", askAtUnload);
    return () => {
      guards.delete(guard);
      if (guards.size === 0) window.removeEventListener("beforeunload", askAtUnload);
    };
  }, [question]);
}

/** Question before a form is left. */
export const formQuestion = "Leave this form? What you have typed in it is lost.";

/**
 * Returns a function that says whether the component is still shown: an answer may arrive after the
 * page was left.
 */
export function useIsShown(): () => boolean {
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  return useCallback(() => isShown.current, []);
}

/**
 * Returns a function that goes to another page without a question, after a successful write. It
 * does nothing when the user has left the page by then.
 */
export function useWayOn(): (to: string) => void {
  const [, navigate] = useLocation();
  const isShown = useIsShown();
  return (to) => {
    if (!isShown()) return;
    guards.clear();
    window.removeEventListener("beforeunload", askAtUnload);
    navigate(to);
  };
}

/** Returns whether leaving loses nothing, or the user confirms it. */
export function mayLeave(): boolean {
  // oxlint-disable-next-line no-alert -- The browser's own question can hold up Back as well.
  return [...guards].every(({ question }) => window.confirm(question));
}

/**
 * Asks before a link of the console leaves the page. A change of the query only stays on the page.
 */
export const askAroundNavigation: AroundNavHandler = (navigate, to, options) => {
  if (!isSamePage(to) && !mayLeave()) return;
  isBack = false;
  navigate(to, options);
  here = location.href;
};

/**
 * Makes Back ask too. Must be called before the router listens, because listeners are called in
 * order.
 */
export function watchBack(): void {
  window.addEventListener("popstate", askAtPop);
}

function askAtUnload(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function askAtPop(event: PopStateEvent): void {
  if (guards.size === 0 || isSamePage(here) || mayLeave()) {
    here = location.href;
    isBack = true;
    return;
  }
  event.stopImmediatePropagation();
  history.pushState(null, "", here);
}

function isSamePage(to: string): boolean {
  return new URL(to, location.href).pathname === location.pathname;
}
