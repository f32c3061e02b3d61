/**
 * Returns the security headers of every answer, for browsers and caches (OWASP REST Security and
 * HTTP Headers cheat sheets). They are constants. koa-helmet would add its defaults for pages,
 * which an API does not have, and compute them for each answer.
 *
 * @param publicUrl Origin that clients use; undefined when it is unknown.
 */
export function securityHeaders(publicUrl?: string): Readonly<Record<string, string>> {
  return {
    // Answers contain records of one person, so no cache may keep them.
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    // An answer that is opened as a page cannot load, run, frame or leak anything.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    // Blocks `<script src>` and the like; pages that CORS allows are not affected.
    "Cross-Origin-Resource-Policy": "same-origin",
    // Without `includeSubDomains`, because the service does not control the subdomains.
    ...(publicUrl?.startsWith("https:") === true ? { "Strict-Transport-Security": "max-age=31536000" } : {}),
  };
}
