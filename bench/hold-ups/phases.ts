/** Phases of a hold-up, as the victim sees it. */
export const phases = ["before", "during", "after"] as const;
export type Phase = (typeof phases)[number];
