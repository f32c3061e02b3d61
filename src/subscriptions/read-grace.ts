import { validationError } from "../kit/errors.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import { longestGrace, usualGrace } from "./rotate-secret.ts";

/**
 * Reads the body of a rotation. Returns the number of seconds for which the current secret
 * continues to sign.
 */
export function readGrace(body: Readonly<Record<string, unknown>>): number {
  refuseFields(body, ["grace"]);
  const { grace = usualGrace } = body;
  if (typeof grace === "number" && Number.isInteger(grace) && grace >= 0 && grace <= longestGrace)
    return grace;
  throw validationError({
    grace: [`The grace field must be a whole number of seconds between 0 and ${longestGrace}.`],
  });
}
