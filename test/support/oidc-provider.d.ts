/** The used part of oidc-provider, which has no types of its own. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export class Provider {
    constructor(issuer: string, configuration: unknown);
    callback(): RequestListener;
  }
}
