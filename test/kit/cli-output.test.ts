import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import {
  createTerminal,
  describeFailure,
  printDone,
  printRow,
  printRows,
  withOpened,
} from "../../src/kit/cli-output.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

const rows = [
  { id: 1, name: "Ada", tags: ["a", "b"], is_admin: true, disabled_at: null },
  { id: 20, name: "Ben", tags: [], is_admin: false, disabled_at: "2026-03-28" },
];

function streams(isTTY: boolean) {
  return {
    stdin: Object.assign(new PassThrough(), { isTTY }),
    stdout: new PassThrough(),
    stderr: Object.assign(new PassThrough(), { isTTY }),
  };
}

describe("printRows", () => {
  it("prints a table without colours", () => {
    const terminal = createMemoryTerminal();
    printRows(terminal, rows, { json: false, empty: "none" });

    expect(terminal.read().stdout).to.equal(
      [
        "┌────┬──────┬──────┬──────────┬─────────────┐",
        "│ id │ name │ tags │ is_admin │ disabled_at │",
        "├────┼──────┼──────┼──────────┼─────────────┤",
        "│ 1  │ Ada  │ a, b │ yes      │ -           │",
        "├────┼──────┼──────┼──────────┼─────────────┤",
        "│ 20 │ Ben  │      │ no       │ 2026-03-28  │",
        "└────┴──────┴──────┴──────────┴─────────────┘",
        "",
      ].join("\n"),
    );
  });

  it("wraps text that is longer than its column, the head too, and cuts nothing", () => {
    const terminal = createMemoryTerminal();
    const given = [{ "dns/connect ms": "unreachable" }];
    printRows(terminal, given, { json: false, empty: "none", widths: [7] });

    expect(terminal.read().stdout).to.equal(
      [
        "┌─────────┐",
        "│ dns/con │",
        "│ nect ms │",
        "├─────────┤",
        "│ unreach │",
        "│ able    │",
        "└─────────┘",
        "",
      ].join("\n"),
    );
  });

  it("prints JSON that is the rows", () => {
    const terminal = createMemoryTerminal();
    printRows(terminal, rows, { json: true, empty: "none" });

    expect(JSON.parse(terminal.read().stdout)).to.deep.equal(rows);
  });

  it("escapes in JSON only characters that could control a terminal", () => {
    const terminal = createMemoryTerminal();
    const given = [{ body: "\u001b[2J\u009b2J\u202egnp.\u{e0041} é 🐎\n" }];
    printRows(terminal, given, { json: true, empty: "none" });

    const { stdout } = terminal.read();
    expect(JSON.parse(stdout)).to.deep.equal(given);
    expect(stdout).to.contain(String.raw`\u001b[2J\u009b2J\u202egnp.\udb40\udc41 é 🐎\n`);
  });

  it("says that the list is empty, and prints an empty list as JSON", () => {
    const terminal = createMemoryTerminal();
    printRows(terminal, [], { json: false, empty: "none" });
    printRows(terminal, [], { json: true, empty: "none" });

    expect(terminal.read().stdout).to.equal("none\n[]\n");
  });

  it("shows control characters escaped", () => {
    const terminal = createMemoryTerminal();
    printRows(terminal, [{ name: "\u001b[2Jx\u202E" }], { json: false, empty: "none" });

    expect(terminal.read().stdout).to.contain("\uFFFD[2Jx\uFFFD");
  });
});

describe("printRow", () => {
  it("prints a line per key", () => {
    const terminal = createMemoryTerminal();
    printRow(terminal, { id: 1, attempts: { made: 2 } }, { json: false });

    const lines = terminal.read().stdout.split("\n");
    expect(lines[1]).to.match(/id .*│ 1 /);
    expect(lines[3]).to.match(/attempts .*│ \{"made":2\}/);
  });
});

describe("printDone", () => {
  it("prints the sentence for people, and the row for machines", () => {
    const terminal = createMemoryTerminal();
    printDone(terminal, { row: { id: 1 }, sentence: "Done\u0007.", json: false });
    printDone(terminal, { row: { id: 1 }, sentence: "Done.", json: true });

    expect(terminal.read().stdout).to.equal('Done\uFFFD.\n{\n  "id": 1\n}\n');
  });
});

describe("describeFailure", () => {
  it("gives the message, all lines of it", () => {
    expect(describeFailure(new OperatorError("2 faults:\n  one\n\n  two"))).to.equal(
      "2 faults:\n  one\n\n  two",
    );
  });

  it("gives the error of Prisma's message, without the source lines", () => {
    const error = new Error(
      "\nInvalid `prisma.user.create()` invocation in\n/app/x.js:1:2\n\n  1 code\n\nCan't reach the server",
    );
    error.name = "PrismaClientKnownRequestError";

    expect(describeFailure(error)).to.equal("Can't reach the server");
  });

  it("gives every reason of an error that has none of its own", () => {
    const refused = new AggregateError([
      new Error("connect ECONNREFUSED ::1"),
      new Error("connect ECONNREFUSED 127.0.0.1"),
    ]);

    expect(describeFailure(refused)).to.equal("connect ECONNREFUSED ::1; connect ECONNREFUSED 127.0.0.1");
  });
});

describe("withOpened", () => {
  it("closes after the work, and returns its result", async () => {
    const log: string[] = [];
    const open = async () => ({ close: async () => void log.push("closed") });

    const answer = await withOpened(open, async () => log.push("worked"));

    expect(answer).to.equal(1);
    expect(log).to.deep.equal(["worked", "closed"]);
  });

  it("closes after work that failed, and fails with it", async () => {
    let isClosed = false;
    const open = async () => ({ close: async () => void (isClosed = true) });

    const error = await withOpened(open, () => Promise.reject(new Error("no"))).catch(
      (thrown: unknown) => thrown,
    );

    expect(error).to.have.property("message", "no");
    expect(isClosed).to.equal(true);
  });
});

describe("createTerminal", () => {
  it("asks on stderr, and leaves stdout to the answer", async () => {
    const { stdin, stdout, stderr } = streams(true);
    const terminal = createTerminal(stdin, stdout, stderr);

    const answer = terminal.ask?.("Name: ");
    stdin.write("Ada\n");

    expect(await answer).to.equal("Ada");
    terminal.stdout("done");
    stdout.end();
    stderr.end();
    expect(await text(stdout)).to.equal("done");
    expect(await text(stderr)).to.contain("Name: ");
  });

  it("keeps lines that were pasted together for the questions to come", async () => {
    const { stdin, stdout, stderr } = streams(true);
    const terminal = createTerminal(stdin, stdout, stderr);

    const first = terminal.ask?.("Name: ");
    stdin.write("Ada\nada@example.com\n");

    expect(await first).to.equal("Ada");
    expect(await terminal.ask?.("E-mail: ")).to.equal("ada@example.com");
  });

  it("fails when the person leaves without an answer", async () => {
    const { stdin, stdout, stderr } = streams(true);

    const answer = createTerminal(stdin, stdout, stderr).ask?.("Name: ");
    stdin.end();

    const error = await answer?.catch((thrown: unknown) => thrown);
    expect(error)
      .to.be.instanceOf(OperatorError)
      .with.property("message", "No answer was given; nothing was done.");
  });

  it("asks no questions when the streams are not a terminal", () => {
    const { stdin, stdout, stderr } = streams(false);

    expect(createTerminal(stdin, stdout, stderr).ask).to.equal(undefined);
  });
});
