import { types } from "pg";

/** An item of an array. A column of arrays accepts arrays of any depth, of any declared depth. */
export type ListItem = string | null | readonly ListItem[];

const textListOid: number = 1009;

/** pg's own parser of `text[]`. It parses the text of every array into texts and nulls. */
// oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum of its typings leaves out every list
export const parseTextList = types.getTypeParser(textListOid) as (text: string) => ListItem[];
