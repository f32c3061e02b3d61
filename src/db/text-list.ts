import { types } from "pg";

/** An item of an array. A column of arrays accepts arrays of any depth, under any declared type. */
export type ListItem = string | null | readonly ListItem[];

const textListOid: number = 1009;

/**
 * pg's own parser of `text[]`, which reads the text of every array: its items are texts or null.
 */
// oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum of its typings leaves out every list
export const parseTextList = types.getTypeParser(textListOid) as (text: string) => ListItem[];
