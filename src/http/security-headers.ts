/**
 * Sets what every answer says to browsers and caches (OWASP REST Security and HTTP Headers cheat
 * sheets). These are six constants. koa-helmet would add its defaults for pages, which an API does
 * not have, and compute them for each answer.
 *
 * @param publicUrl Origin that clients use; undefined when it is not known.
 */
export function securityHeaders(publicUrl?: string): Readonly<Record<string, string>> {
  return {
    // Answers are records of one person: no cache on the way may keep them.
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    // An answer that is opened as a page loads, runs, frames and leaks nothing.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    // Bars `<script src>` and the like; pages that CORS allows are not concerned by it.
    "Cross-Origin-Resource-Policy": "same-origin",
    // Without `includeSubDomains`: the service knows nothing of the subdomains.
    ...(publicUrl?.startsWith("https:") === true ? { "Strict-Transport-Security": "max-age=31536000" } : {}),
  };
}
