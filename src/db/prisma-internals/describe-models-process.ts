import { getInternalDMMF } from "@prisma/get-dmmf";
import { buildAndSerializeParamGraph } from "@prisma/param-graph-builder";
import type { DescribeAnswer } from "./describe-models.ts";

/**
 * The child process of `describeModels`: it receives one schema as a message, and sends one answer.
 */
process.once("message", (schemaText: string) => {
  process.send?.(answer(schemaText), () => process.disconnect());
});

function answer(schemaText: string): DescribeAnswer {
  const document = getInternalDMMF({ datamodel: [["schema.prisma", schemaText]] });
  if ("error" in document) return { refusal: messageIn(document.error.message) };
  return {
    runtimeDataModel: {
      models: Object.fromEntries(document.datamodel.models.map((model) => [model.name, model])),
      enums: {},
      types: {},
    },
    parameterizationSchema: buildAndSerializeParamGraph(document),
  };
}

/**
 * Returns Prisma's message. A refused schema comes as JSON with a code, a parser fault as plain
 * text.
 */
function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { readonly message: string }).message;
  } catch {
    return text;
  }
}
