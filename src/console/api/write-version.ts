import { ApiError } from "./api-error.ts";
import { apiAnswer, type Answer, type RequestOptions } from "./client.ts";

/**
 * Returns whether a write was refused because of a header, with nothing written. The arguments of
 * the resource's code module may only be supported by Prisma (docs/writes.md, "Code modules"). Or
 * no more answers are kept for the user's keys.
 */
export function isHeaderRefused(error: unknown, name: string): boolean {
  if (!(error instanceof ApiError)) return false;
  const isModule = error.code === "validation.failed" && error.message.includes(`${name}: its code module`);
  return isModule || error.code === "idempotency.exhausted";
}

/**
 * Sends a write for a version of a record, or for any version when the resource has no versions.
 */
export async function writeVersion<T>(
  path: string,
  etag: string | null,
  options: Omit<RequestOptions, "headers">,
): Promise<Answer<T>> {
  if (etag === null) return apiAnswer<T>(path, options);
  try {
    return await apiAnswer<T>(path, { ...options, headers: { "If-Match": etag } });
  } catch (error) {
    if (!isHeaderRefused(error, "If-Match")) throw error;
    return apiAnswer<T>(path, options);
  }
}
