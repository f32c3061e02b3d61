import { generate } from "./generated.ts";

generate();
