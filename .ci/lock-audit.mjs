/**
 * What is wrong with a lock file and the package.json it belongs to. Pure.
 *
 * @param lock package-lock.json, parsed.
 * @param policy audit-policy.json, parsed.
 * @returns {{ faults: string[], notes: string[], count: number }} One line each; the count is that of production packages.
 */
export function auditLock(lock, policy) {
  const faults = [];
  const { "": root = {}, ...entries } = lock.packages ?? {};
  if (!(lock.lockfileVersion >= 2)) faults.push("package-lock.json: expected lockfileVersion 2 or later");

  for (const group of ["dependencies", "devDependencies", "optionalDependencies"]) {
    for (const [name, range] of Object.entries(root[group] ?? {})) {
      if (!exactVersion.test(range))
        faults.push(`${name}: package.json asks for ${range}; expected an exact version`);
    }
  }

  const packages = Object.entries(entries).map(([path, entry]) => ({
    ...entry,
    name: entry.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
  }));
  for (const entry of packages) faults.push(...originFaults(entry));

  const used = new Set();
  const find = (list, { name }) => {
    const found = list.find((item) => item.package === name);
    if (found !== undefined) used.add(found);
    return found;
  };

  for (const entry of packages.filter(({ hasInstallScript }) => hasInstallScript)) {
    if (find(policy.installScripts, entry) === undefined)
      faults.push(
        `${labelOf(entry)}: runs a script when it is installed, which installScripts does not list`,
      );
  }

  const production = packages.filter(({ dev }) => dev !== true);
  for (const entry of production) {
    const licence = licenceOf(entry);
    if (isAllowed(licence, new Set(policy.licences))) continue;
    if (find(policy.licenceExceptions, entry)?.licence === licence) continue;
    faults.push(`${labelOf(entry)}: the licence ${licence} is neither in licences nor an exception`);
  }

  const notes = [...policy.installScripts, ...policy.licenceExceptions]
    .filter((item) => !used.has(item))
    .map((item) => `audit-policy.json: ${item.package} is listed, and no longer needed`);
  return { faults, notes, count: production.length };
}

const exactVersion = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?$/;
const registry = "https://registry.npmjs.org/";

/** From the public registry and nowhere else; npm leaves the address out when a setting says so, and then takes the configured registry. */
function originFaults(entry) {
  const label = labelOf(entry);
  if (entry.link === true) return [`${label}: a link to a folder; expected a package`];
  const faults = [];
  if (!exactVersion.test(entry.version ?? "")) faults.push(`${label}: expected an exact version`);
  if (!(entry.integrity ?? "").startsWith("sha512-"))
    faults.push(`${label}: expected an integrity of sha512`);
  if (entry.resolved !== undefined && !entry.resolved.startsWith(registry))
    faults.push(`${label}: comes from ${hostOf(entry.resolved)}; expected the public registry`);
  return faults;
}

/** Without what else an address may hold, a password above all. */
function hostOf(address) {
  return URL.canParse(address) ? new URL(address).host || new URL(address).protocol : "elsewhere";
}

function labelOf({ name, version = "" }) {
  return `${name} ${version}`.trim();
}

/** Old packages have an object, or a list of them. */
function licenceOf({ license }) {
  if (typeof license === "string" && license !== "") return license;
  if (typeof license?.type === "string") return license.type;
  return "none stated";
}

/**
 * Whether an SPDX expression is met by allowed licences: one of those joined by OR, all of those joined by AND, which binds more
 * tightly. False for what is none. `WITH` is part of a licence's name.
 */
export function isAllowed(expression, allowed) {
  const tokens = expression.match(/[()]|[^\s()]+(?: +WITH +[^\s()]+)?/gi) ?? [];
  let isCutShort = false;
  const isNext = (word) => tokens[0]?.toUpperCase() === word;
  const either = () => {
    let met = both();
    while (isNext("OR")) {
      tokens.shift();
      met = both() || met;
    }
    return met;
  };
  const both = () => {
    let met = one();
    while (isNext("AND")) {
      tokens.shift();
      met = one() && met;
    }
    return met;
  };
  const one = () => {
    const token = tokens.shift();
    if (token === undefined) isCutShort = true;
    if (token !== "(") return allowed.has(token);
    const met = either();
    return tokens.shift() === ")" && met;
  };
  return either() && tokens.length === 0 && !isCutShort;
}

/** npm's own scale, from what is looked at on. */
const grave = new Set(["high", "critical"]);

/**
 * What `npm audit --json` reports at high or above, less what the policy accepts until a day.
 *
 * @param report Parsed.
 * @param now ISO date.
 * @returns {{ faults: string[], notes: string[] } | undefined} Undefined when it is no report but an error.
 */
export function auditAdvisories(report, policy, now) {
  if (typeof report?.vulnerabilities !== "object" || report.vulnerabilities === null) return undefined;
  const advisories = new Map(
    Object.values(report.vulnerabilities)
      .flatMap(({ via }) => via)
      // A name leads to the entry of that package, which is in the report too.
      .filter((cause) => typeof cause === "object" && grave.has(cause.severity))
      .map((cause) => [idOf(cause), cause]),
  );
  const faults = [];
  const notes = [];
  for (const [id, { name, severity, title }] of advisories) {
    const accepted = policy.advisories.find((item) => item.id === id);
    const line = `${name}: ${id}, ${severity}: ${title}`;
    if (accepted === undefined) faults.push(line);
    else if (accepted.expires < now) faults.push(`${line} (was accepted until ${accepted.expires})`);
    else notes.push(`${line} (accepted until ${accepted.expires}: ${accepted.reason})`);
  }
  for (const { id } of policy.advisories.filter((item) => !advisories.has(item.id)))
    notes.push(`audit-policy.json: ${id} is listed, and no longer needed`);
  return { faults, notes };
}

/** `GHSA-…`, by which advisories are known outside of npm. */
function idOf({ url = "", source }) {
  return /GHSA-[\w-]+/.exec(url)?.[0] ?? String(source);
}
