import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";

/** What a machine's files say of names: /etc/hosts and /etc/resolv.conf. The name servers themselves are read by Node's resolver. */
export interface NameFiles {
  /** Addresses by name in lower case, in the order of the file. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  /** Domains that short names are tried in, in their order. */
  readonly search: readonly string[];
  /** Names with so many dots are tried as they are before they are tried in the domains. */
  readonly ndots: number;
}

/** As glibc bounds it. */
const maxNdots = 15;

/** Reads the text of /etc/hosts: an address and its names a line. What is not a line of it is passed over. Pure. */
export function parseHosts(text: string): NameFiles["hosts"] {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = wordsOf(line.replace(/#.*/, ""));
    for (const name of address === undefined ? [] : names) {
      const key = name.toLowerCase();
      const known = hosts.get(key);
      if (known === undefined) hosts.set(key, [address ?? ""]);
      else known.push(address ?? "");
    }
  }
  return hosts;
}

/**
 * Reads the search list and `ndots` from the text of /etc/resolv.conf as glibc does (resolv.conf(5)): the last `search` or `domain` line
 * counts; without one, the domain is what follows the first dot of the machine's name. Pure.
 */
export function parseResolvConf(text: string, machine: string): Pick<NameFiles, "search" | "ndots"> {
  const dot = machine.indexOf(".");
  let search = dot === -1 ? [] : [machine.slice(dot + 1)];
  let ndots = 1;
  for (const line of text.split("\n")) {
    // Comments are lines of their own here.
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
 * The full names that a name may stand for, in the order in which glibc tries them, each without a dot at its end. A name with a dot
 * at its end stands for itself. Pure.
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

/** The files change seldom, and a burst of look-ups should read them once: Kubernetes and DHCP replace them in place. */
const keptMs = 5_000;

/** Reads both files, at most every five seconds. What cannot be read says nothing. Never rejects. */
export function createNameFiles({
  hosts = "/etc/hosts",
  resolvConf = "/etc/resolv.conf",
  now = () => performance.now(),
}: {
  readonly hosts?: string;
  readonly resolvConf?: string;
  /** In ms, never going back. */
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
