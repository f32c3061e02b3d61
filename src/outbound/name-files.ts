import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import { getOrSet } from "../kit/group-by.ts";

/**
 * Contents of /etc/hosts and /etc/resolv.conf that resolve names. Node's resolver reads the name
 * servers itself.
 */
export interface NameFiles {
  /** Addresses by name in lower case, in the order of the file. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  /** Domains that are appended to short names, in order. */
  readonly search: readonly string[];
  /** Names with at least this many dots are tried unchanged first. */
  readonly ndots: number;
}

/** The limit of glibc. */
const maxNdots = 15;

/** Parses the text of /etc/hosts: an address and its names per line. Skips other lines. Pure. */
export function parseHosts(text: string): NameFiles["hosts"] {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = wordsOf(line.replace(/#.*/, ""));
    for (const name of names) getOrSet(hosts, name.toLowerCase(), () => []).push(address);
  }
  return hosts;
}

/**
 * Parses the search list and `ndots` in the text of /etc/resolv.conf as glibc does
 * (resolv.conf(5)). The last `search` or `domain` line counts. Without one, the domain is the part
 * of the machine's name after the first dot. Pure.
 */
export function parseResolvConf(text: string, machine: string): Pick<NameFiles, "search" | "ndots"> {
  const dot = machine.indexOf(".");
  let search = dot === -1 ? [] : [machine.slice(dot + 1)];
  let ndots = 1;
  for (const line of text.split("\n")) {
    // Comments are whole lines in this file.
    const [keyword, ...values] = /^[#;]/.test(line) ? [] : wordsOf(line);
    if (keyword === "search" && values.length > 0) search = values;
    else if (keyword === "domain" && values.length > 0) search = values.slice(0, 1);
    else if (keyword === "options")
      for (const option of values) {
        const [, count] = /^ndots:(\d+)/.exec(option) ?? [];
        if (count !== undefined) ndots = Math.min(Number(count), maxNdots);
      }
  }
  return { search: search.map((domain) => domain.replace(/^\.|\.$/g, "")), ndots };
}

/**
 * Returns the full names to try for a name, in the order of glibc, without a final dot. A name with
 * a final dot has no other candidates. Pure.
 */
export function candidatesOf(
  name: string,
  { search, ndots }: Pick<NameFiles, "search" | "ndots">,
): readonly string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const inDomains = search.map((domain) => (domain === "" ? name : `${name}.${domain}`));
  const dots = name.split(".").length - 1;
  return [...new Set(dots >= ndots ? [name, ...inDomains] : [...inDomains, name])];
}

function wordsOf(line: string): readonly string[] {
  return line.split(/\s+/).filter((word) => word !== "");
}

/**
 * How long the files are cached. A burst of look-ups reads them once, but a replaced file is soon
 * seen: Kubernetes and DHCP replace them in place.
 */
const keptMs = 5_000;

/**
 * Returns a function that reads both files, at most every five seconds. A file that cannot be read
 * counts as empty. Never rejects.
 */
export function createNameFiles({
  hosts = "/etc/hosts",
  resolvConf = "/etc/resolv.conf",
  now = () => performance.now(),
}: {
  readonly hosts?: string;
  readonly resolvConf?: string;
  /** Monotonic clock, in ms. */
  readonly now?: () => number;
} = {}): () => Promise<NameFiles> {
  let kept: { readonly files: Promise<NameFiles>; readonly untilMs: number } | undefined;
  async function read(): Promise<NameFiles> {
    const [hostsText, resolvText] = await Promise.all(
      [hosts, resolvConf].map((path) => readFile(path, "utf8").catch(() => "")),
    );
    return { hosts: parseHosts(hostsText ?? ""), ...parseResolvConf(resolvText ?? "", hostname()) };
  }
  return () => {
    if (kept === undefined || kept.untilMs <= now()) kept = { files: read(), untilMs: now() + keptMs };
    return kept.files;
  };
}
