import { expect } from "chai";
import { AppError, messageOf, OperatorError } from "../../src/kit/errors.ts";

function named(name: string, message: string, facts: object = {}): Error {
  return Object.assign(new Error(message), { name }, facts);
}

describe("messageOf", () => {
  const cases: readonly { readonly what: string; readonly error: unknown; readonly message: string }[] = [
    {
      what: "PostgreSQL's message on a value",
      error: named("error", 'invalid input syntax for type integer: "can"ary"', { code: "22P02" }),
      message: 'invalid input syntax for type integer: "…"',
    },
    {
      what: "the same by way of Prisma's adapter",
      error: named("DriverAdapterError", 'invalid input value for enum mood: "canary"', {
        cause: { originalCode: "22P02" },
      }),
      message: 'invalid input value for enum mood: "…"',
    },
    {
      what: "Prisma's message on a raw query",
      error: named(
        "PrismaClientKnownRequestError",
        'Invalid `prisma.$queryRaw()` invocation:\n\n\nRaw query failed. Code: `22008`. Message: `date/time field value out of range: "canary"`',
        { code: "P2010" },
      ),
      message: 'Raw query failed. Code: `22008`. Message: `date/time field value out of range: "…"`',
    },
    {
      what: "Prisma's message on arguments",
      error: named(
        "PrismaClientValidationError",
        'Invalid `note.create()` invocation in\n/app/x.js:1:1\n\n{ data: { text: "canary" } }\n\nArgument `text`: Invalid value provided. Expected Int, provided "canary".',
      ),
      message: 'Argument `text`: Invalid value provided. Expected Int, provided "…".',
    },
    {
      what: "a JSON parser's message",
      error: new SyntaxError(`Unexpected token 'c', ..."a": canary"}" is not valid JSON`),
      message: `Unexpected token 'c', ..."…" is not valid JSON`,
    },
    {
      what: "a message with a URL",
      error: new Error("POST https://ada:canary@example.com:8443/canary?key=canary failed"),
      message: "POST https://…@example.com:8443/… failed",
    },
    {
      what: "a message with a connection string",
      error: new Error("cannot use postgresql://svc:can/ary@db:5432/svc"),
      message: "cannot use postgresql://…@db:5432/svc",
    },
  ];
  for (const { what, error, message } of cases)
    it(`keeps the value out of ${what}`, () => {
      expect(messageOf(error)).to.equal(message);
    });

  it("leaves names in PostgreSQL's other messages", () => {
    const error = named("error", 'duplicate key value violates unique constraint "notes_text_once"', {
      code: "23505",
    });

    expect(messageOf(error)).to.equal('duplicate key value violates unique constraint "notes_text_once"');
  });

  it("leaves this service's own messages", () => {
    const message = 'expected a URL such as https://api.example.com/x, not "x"';

    expect(messageOf(new OperatorError(message))).to.equal(message);
    expect(messageOf(new AppError("request.malformed", message))).to.equal(message);
  });

  it("says why each address of a name was refused", () => {
    const refused = ["::1:5432", "127.0.0.1:5432"].map((to) => new Error(`connect ECONNREFUSED ${to}`));

    expect(messageOf(new AggregateError(refused))).to.equal(
      "connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432",
    );
  });

  it("accepts any thrown value", () => {
    expect(messageOf("text")).to.equal("text");
  });
});
