import { randomBytes } from "node:crypto";

/** Unique secrets, and the texts in which they must not appear. */
export interface Canaries {
  /** Creates a secret for a place. */
  make(place: string): string;
  /** Registers an existing secret. */
  adopt(place: string, secret: string): void;
  /** Adds a text that others can read. */
  keep(where: string, text: string): void;
  /** Returns each secret that appeared in a text, with its surroundings; empty without any. */
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
