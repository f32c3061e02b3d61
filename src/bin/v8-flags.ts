// `svc` imports this file first, since V8 counts from the first collection on.
//
// V8 counts which objects survive its young collections, by the code that allocates them. Requests
// in flight survive. V8 then allocates later objects of that code in the old generation. Each of
// these objects keeps its request alive until the next full collection. That takes 20 to 45 us of
// CPU per request, while a read of one record takes 80 us (docs/decisions/0035).
import { setFlagsFromString } from "node:v8";

setFlagsFromString("--no-allocation-site-pretenuring");
