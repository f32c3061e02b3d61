import { absent, type Case } from "./case.ts";

export const choiceCases: readonly Case[] = [
  {
    rules: "in:a,1,true",
    message: "The selected item code is invalid.",
    holds: ["a", 1, "1", true],
    breaks: ["b", null, false, [], ["a"]],
  },
  {
    rules: ["array", { in: ["a", "b|c"] }],
    message: "The selected item code is invalid.",
    holds: [["a", "b|c"], []],
    breaks: [["a", "x"]],
  },
  {
    rules: "not_in:a,1",
    message: "The selected item code is invalid.",
    holds: ["b", 2],
    breaks: ["a", "1", 1],
  },
  {
    rules: "array|not_in:a",
    message: "The selected item code is invalid.",
    holds: [["b"]],
    breaks: [["b", "a"]],
  },
  { rules: "enum:a,b", message: "The selected item code is invalid.", holds: ["a"], breaks: ["c"] },
  {
    rules: "in_array:allowed_codes.*",
    message: "The item code field must exist in allowed_codes.*.",
    holds: ["a", 1, "1"],
    breaks: ["b", [], null],
    beside: { allowed_codes: ["a", 1] },
  },
  {
    rules: "exists:orders,reference",
    message: "The selected item code is invalid.",
    holds: ["A-1", absent, ["A-1", "A-1"]],
    breaks: ["A-2", null, ["A-1", "A-2"], { a: "A-1" }],
  },
  {
    rules: "unique:orders,reference",
    message: "The item code has already been taken.",
    holds: ["A-2", absent, null],
    breaks: ["A-1"],
  },
  {
    rules: "confirmed",
    message: "The item code field confirmation does not match.",
    holds: ["a", absent],
    breaks: ["b"],
    beside: { item_code_confirmation: "a" },
  },
  {
    rules: "confirmed:again",
    message: "The item code field confirmation does not match.",
    holds: ["a"],
    breaks: ["b"],
    beside: { again: "a" },
  },
  {
    rules: "same:other_code",
    message: "The item code field must match other code.",
    holds: ["1"],
    breaks: [1, "a"],
    beside: { other_code: "1" },
  },
  {
    rules: "different:other_code",
    message: "The item code field and other code must be different.",
    holds: ["a", 1],
    breaks: ["1"],
    beside: { other_code: "1" },
  },
];
