import { expect } from "chai";
import { describeError, loggedError } from "../../src/telemetry/logged-error.ts";

describe("loggedError", () => {
  it("keeps name, message, codes and frames", () => {
    const error = Object.assign(new Error("refused"), {
      name: "error",
      code: "23505",
      table: "notes",
      constraint: "notes_text_once",
      detail: "Key (text)=(canary) already exists.",
      where: "canary",
      parameters: ["canary"],
    });

    const { stack, ...logged } = loggedError(error);

    expect(logged).to.deep.equal({
      type: "error",
      message: "refused",
      code: "23505",
      table: "notes",
      constraint: "notes_text_once",
    });
    expect(stack).to.match(/^\s+at .*logged-error\.test\.ts/);
  });

  it("does not repeat the message in the stack, with any number of lines", () => {
    const { stack } = loggedError(new Error("first\nsecond canary"));

    expect(stack).to.not.include("first").and.not.include("canary");
  });

  it("reduces causes and joint errors in the same way", () => {
    const cause = Object.assign(new Error("inner"), { detail: "canary" });
    const error = new AggregateError([cause], "outer", { cause });

    const logged = loggedError(error);

    expect([logged.cause?.message, logged.errors?.[0]?.message]).to.deep.equal(["inner", "inner"]);
    expect(JSON.stringify(logged)).to.not.include("canary");
  });

  it("terminates on an error that is its own cause", () => {
    const error = new Error("round");
    error.cause = error;

    expect(JSON.stringify(loggedError(error)).match(/"round"/g)).to.have.length(5);
  });

  it("uses a value that is no error as its text", () => {
    expect(loggedError("thrown")).to.deep.equal({ type: "string", message: "thrown" });
  });
});

describe("describeError", () => {
  it("says the same in lines", () => {
    const error = Object.assign(new TypeError("broken", { cause: new Error("inner") }), { detail: "canary" });

    const text = describeError(error);

    expect(text)
      .to.match(/^TypeError: broken\n\s+at /)
      .and.match(/\ncaused by Error: inner$/);
    expect(text).to.not.include("canary");
  });
});
