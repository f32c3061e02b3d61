import { randomBytes } from "node:crypto";

/** Secrets that differ from one another, and the places that they must not turn up in. */
export interface Canaries {
  /** A new one, to be put where a secret could be. */
  make(place: string): string;
  /** Takes a secret that is there already for one. */
  adopt(place: string, secret: string): void;
  /** Keeps a text that others can read. */
  keep(where: string, text: string): void;
  /** Which secret turned up where, with what is around it; empty when none did. */
  leaks(): readonly string[];
}

export function createCanaries(): Canaries {
  const placeOf = new Map<string, string>();
  const texts: { readonly where: string; readonly text: string }[] = [];
  return {
    make(place) {
      const secret = `canary${randomBytes(9).toString("hex")}`;
      placeOf.set(secret, place);
      return secret;
    },
    adopt: (place, secret) => void placeOf.set(secret, place),
    keep: (where, text) => void texts.push({ where, text }),
    leaks() {
      return texts.flatMap(({ where, text }) =>
        [...placeOf].flatMap(([secret, place]) =>
          text.includes(secret) ? [`${place} in ${where}: ${around(text, secret)}`] : [],
        ),
      );
    },
  };
}

function around(text: string, secret: string): string {
  const at = text.indexOf(secret);
  return text.slice(Math.max(0, at - 120), at + secret.length + 40);
}
