import { expect } from "chai";
import { securityHeaders } from "../../src/http/security-headers.ts";

describe("securityHeaders", () => {
  it("forbid caches, frames and content sniffing", () => {
    expect(securityHeaders()).to.deep.equal({
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
      "X-Frame-Options": "DENY",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Resource-Policy": "same-origin",
    });
  });

  it("require TLS only of clients that came over TLS", () => {
    expect(securityHeaders("https://api.example.com")).to.include({
      "Strict-Transport-Security": "max-age=31536000",
    });
    expect(securityHeaders("http://api.example.com")).not.to.have.property("Strict-Transport-Security");
  });
});
