// The first import of `svc`: V8 decides from the first collection on.
//
// V8 counts what survives its collections, by the place in the code that made it. Many requests in
// flight survive, and V8 then makes the like of them in the old generation at once. Each of these
// objects keeps its request until the next full collection: 20 to 45 us of CPU for a request, where
// reading a record takes 80 (docs/decisions/0035).
import { setFlagsFromString } from "node:v8";

setFlagsFromString("--no-allocation-site-pretenuring");
