import type { JSX } from "react";
import type { Json } from "../../api/types.ts";
import { Badge } from "../../parts/badge.tsx";
import { Value } from "../../parts/code.tsx";
import { Time } from "../../parts/time.tsx";

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/**
 * Shows a value of a record: moments as ages, or `isExact`, and the values of an enum as badges.
 */
export function ShownValue({
  value,
  isChoice = false,
  isExact = false,
}: {
  readonly value: Json | undefined;
  readonly isChoice?: boolean;
  readonly isExact?: boolean;
}): JSX.Element {
  if (typeof value === "string" && moment.test(value)) return <Time value={value} isExact={isExact} />;
  if (typeof value === "string" && isChoice && value !== "")
    return (
      <Badge>
        <bdi>{value}</bdi>
      </Badge>
    );
  return <Value value={value} />;
}
