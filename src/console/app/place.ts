/** Paths of the console and the API, which the server wrote into the page. */
export interface Place {
  /** Path of the console, without a slash at its end; "" at the root. */
  readonly basePath: string;
  /** Path of the API, without a slash at its end; "" at the root. */
  readonly apiPath: string;
  readonly docsPath: string | null;
  readonly version: string;
  readonly jwt: JwtPlace | null;
}

export interface JwtPlace {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience?: string | null;
}

function readPlace(): Place {
  const text = document.querySelector('meta[name="svc-console"]')?.getAttribute("content") ?? "{}";
  const written = JSON.parse(text) as Partial<Place>;
  return {
    basePath: withoutSlash(written.basePath ?? "/console"),
    apiPath: withoutSlash(written.apiPath ?? "/svc-api"),
    docsPath: written.docsPath ?? null,
    version: written.version ?? "",
    jwt: written.jwt ?? null,
  };
}

function withoutSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

export const place: Place = readPlace();
