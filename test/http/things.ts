import { AppError } from "../../src/kit/errors.ts";
import { createRouter, type ApiRouter } from "../../src/http/state.ts";

/** Routes below `/api` that answer 200, 422 and 500. */
export function thingsRouter(): ApiRouter {
  const router = createRouter("/api");
  router.get("/things", (ctx) => {
    ctx.body = { data: [] };
  });
  router.post("/things", () => {
    throw new AppError("validation.failed", "No.", { errors: { name: ["No."] } });
  });
  router.get("/broken", () => {
    throw new Error("broken");
  });
  return router;
}

/** Returns the 401 of a request without a token. */
export function missingToken(): AppError {
  return new AppError("token.missing", "Unauthenticated.", { headers: { "WWW-Authenticate": "Bearer" } });
}
