// @ts-check
import { getInternalDMMF } from "@prisma/get-dmmf";
import { buildAndSerializeParamGraph } from "@prisma/param-graph-builder";

/**
 * The child process of `describeModels`: it receives one schema as a message, and sends one answer.
 * JavaScript, so that tests start it without a loader, which takes twice the CPU of the answer.
 */
process.once("message", (schemaText) => {
  process.send?.(answer(String(schemaText)), () => process.disconnect());
});

/**
 * @param {string} schemaText
 * @returns {import("./describe-models.ts").DescribeAnswer}
 */
function answer(schemaText) {
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
 *
 * @param {string} text
 * @returns {string}
 */
function messageIn(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return text;
  }
}
