import { absent, type Case } from "./case.ts";

export const typeCases: readonly Case[] = [
  {
    rules: "string",
    message: "The item code field must be a string.",
    holds: [absent, "a", "1"],
    breaks: [null, 1, true, [], {}],
  },
  {
    rules: "nullable|string",
    message: "The item code field must be a string.",
    holds: [absent, null, "a"],
    breaks: [1],
  },
  {
    rules: "integer",
    message: "The item code field must be an integer.",
    holds: [5, -5, "5", "-5", "+5", 0, "0", 5.0],
    breaks: [5.5, "5.0", "05", "a", "1e3", true, null, [], Infinity],
  },
  {
    rules: "integer:strict",
    message: "The item code field must be an integer.",
    holds: [5, -5],
    breaks: ["5", 5.5],
  },
  {
    rules: "numeric",
    message: "The item code field must be a number.",
    holds: [5, 5.5, "5.5", ".5", "5.", "-1e3", "+2"],
    breaks: ["a", "1,5", "0x1A", "1e", true, null, [], Infinity],
  },
  {
    rules: "numeric:strict",
    message: "The item code field must be a number.",
    holds: [5, 5.5],
    breaks: ["5"],
  },
  {
    rules: "decimal:2",
    message: "The item code field must have 2 decimal places.",
    holds: ["1.50", 1.25, "-.25"],
    breaks: ["1.5", 1, "1.505", "a", true],
  },
  {
    rules: "decimal:0,2",
    message: "The item code field must have 0-2 decimal places.",
    holds: [1, "1.5", 1.25],
    breaks: [1.255, "1e2", null],
  },
  {
    rules: "decimal:0,8",
    message: "The item code field must have 0-8 decimal places.",
    holds: [1e-8, "0.00000001", 1e21],
    breaks: [1e-9, "1e-8"],
  },
  {
    rules: "boolean",
    message: "The item code field must be true or false.",
    holds: [true, false, 0, 1, "0", "1"],
    breaks: ["true", 2, null, "yes", []],
  },
  {
    rules: "boolean:strict",
    message: "The item code field must be true or false.",
    holds: [true, false],
    breaks: [0, 1, "1"],
  },
  {
    rules: "array",
    message: "The item code field must be an array.",
    holds: [[], [1], {}, { a: 1 }],
    breaks: ["a", 1, null],
  },
  {
    rules: "array:a,b",
    message: "The item code field must be an array.",
    holds: [{}, { a: 1 }, { b: 1, a: 2 }],
    breaks: [{ c: 1 }, [1]],
  },
  {
    rules: "list",
    message: "The item code field must be a list.",
    holds: [[], [1]],
    breaks: [{}, { 0: 1 }, "a", null],
  },
  {
    rules: "json",
    message: "The item code field must be a valid JSON string.",
    holds: ["{}", "1", "null", '"a"'],
    breaks: ["{", 1, {}, null],
  },
];
