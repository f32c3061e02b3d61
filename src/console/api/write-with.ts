import { isStatus } from "./api-error.ts";
import { apiAnswer, type Answer, type RequestOptions } from "./client.ts";

/**
 * Sends a write with a header, and without it to a resource that does not take it. Of such a
 * resource, only Prisma knows the arguments of the code module (docs/writes.md, "Code modules").
 * Its 422 names the header, and nothing was written.
 */
export async function writeWith<T>(
  path: string,
  [name, value]: readonly [name: string, value: string | null],
  options: Omit<RequestOptions, "headers">,
): Promise<Answer<T>> {
  if (value === null) return apiAnswer<T>(path, options);
  try {
    return await apiAnswer<T>(path, { ...options, headers: { [name]: value } });
  } catch (error) {
    const isRefused = isStatus(error, 422) && error.code === "validation.failed";
    if (!isRefused || !error.message.includes(`${name}: its code module`)) throw error;
    return apiAnswer<T>(path, options);
  }
}
