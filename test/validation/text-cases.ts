import type { Case } from "./case.ts";

export const textCases: readonly Case[] = [
  {
    rules: "alpha",
    message: "The item code field must only contain letters.",
    holds: ["abc", "äß日"],
    breaks: ["a1", "a b", "a-", 1],
  },
  {
    rules: "alpha:ascii",
    message: "The item code field must only contain letters.",
    holds: ["abc"],
    breaks: ["ä"],
  },
  {
    rules: "alpha_dash",
    message: "The item code field must only contain letters, numbers, dashes, and underscores.",
    holds: ["a-b_1", 12],
    breaks: ["a b", "a."],
  },
  {
    rules: "alpha_num",
    message: "The item code field must only contain letters and numbers.",
    holds: ["ä1", 1],
    breaks: ["a-1", "a_"],
  },
  {
    rules: "ascii",
    message: "The item code field must only contain single-byte alphanumeric characters and symbols.",
    holds: ["a b!"],
    breaks: ["ä"],
  },
  {
    rules: "lowercase",
    message: "The item code field must be lowercase.",
    holds: ["abc1"],
    breaks: ["aBc", 1],
  },
  { rules: "uppercase", message: "The item code field must be uppercase.", holds: ["ABC1"], breaks: ["AbC"] },
  {
    rules: "starts_with:a,b",
    message: "The item code field must start with one of the following: a, b.",
    holds: ["ax", "b"],
    breaks: ["xa", []],
  },
  {
    rules: "ends_with:a,b",
    message: "The item code field must end with one of the following: a, b.",
    holds: ["xa"],
    breaks: ["ax"],
  },
  {
    rules: "doesnt_start_with:a,b",
    message: "The item code field must not start with one of the following: a, b.",
    holds: ["xa"],
    breaks: ["ax"],
  },
  {
    rules: "doesnt_end_with:a,b",
    message: "The item code field must not end with one of the following: a, b.",
    holds: ["ax"],
    breaks: ["xa"],
  },
  {
    rules: "array|contains:a,1",
    message: "The item code field is missing a required value.",
    holds: [["a", 1, "z"]],
    breaks: [["a"], []],
  },
  {
    rules: "array|doesnt_contain:a,b",
    message: "The item code field must not contain any of the following: a, b.",
    holds: [["c"], []],
    breaks: [["c", "a"]],
  },
  {
    rules: "array|distinct",
    message: "The item code field has a duplicate value.",
    holds: [["a", "b", "A"], []],
    breaks: [
      ["a", "a"],
      [1, "1"],
    ],
  },
  {
    rules: "array|distinct:strict",
    message: "The item code field has a duplicate value.",
    holds: [[1, "1"]],
    breaks: [[1, 1]],
  },
  {
    rules: "array|distinct:ignore_case",
    message: "The item code field has a duplicate value.",
    holds: [["a", "b"]],
    breaks: [["a", "A"]],
  },
  {
    rules: "array|required_array_keys:a,b",
    message: "The item code field must contain entries for: a, b.",
    holds: [{ a: 1, b: null, c: 1 }],
    breaks: [{ a: 1 }, [1, 2]],
  },
];
