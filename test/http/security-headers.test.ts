import { expect } from "chai";
import { securityHeaders } from "../../src/http/security-headers.ts";

describe("securityHeaders", () => {
  it("keep answers out of caches, frames and pages, and from being taken for anything but what they are", () => {
    expect(securityHeaders()).to.deep.equal({
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
      "X-Frame-Options": "DENY",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Resource-Policy": "same-origin",
    });
  });

  it("demand TLS only of clients that came by it", () => {
    expect(securityHeaders("https://api.example.com")).to.include({
      "Strict-Transport-Security": "max-age=31536000",
    });
    expect(securityHeaders("http://api.example.com")).not.to.have.property("Strict-Transport-Security");
  });
});
