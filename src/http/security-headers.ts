/**
 * What every answer tells browsers and caches (OWASP REST Security and HTTP Headers cheat sheets). Six constants; koa-helmet
 * would add its defaults for pages, which an API has none of, and compute them for each answer.
 *
 * @param publicUrl Origin that clients use; undefined when it is not known.
 */
export function securityHeaders(publicUrl?: string): Readonly<Record<string, string>> {
  return {
    // Answers are somebody's own records: no cache on the way may keep them.
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    // Whoever opens an answer as a page gets one that loads, runs, frames and leaks nothing.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    // Bars `<script src>` and the like; pages that CORS allows are not concerned by it.
    "Cross-Origin-Resource-Policy": "same-origin",
    // Not for subdomains: those are not ours to promise anything about.
    ...(publicUrl?.startsWith("https:") === true ? { "Strict-Transport-Security": "max-age=31536000" } : {}),
  };
}
