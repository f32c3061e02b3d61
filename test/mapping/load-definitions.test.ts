import { expect } from "chai";
import { OperatorError } from "../../src/kit/errors.ts";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { createMappingFolder } from "./mapping-folder.ts";

describe("loadDefinitions", () => {
  it("throws an OperatorError with every fault and the path of its file", async () => {
    const folder = createMappingFolder({ "a.yaml": "nmae: a", "b.yaml": "" });
    let thrown: unknown;
    try {
      await loadDefinitions(folder.configDir);
    } catch (error) {
      thrown = error;
    }

    expect(thrown).to.be.instanceOf(OperatorError);
    const [head, ...lines] = (thrown as OperatorError).message.split("\n");
    expect(head).to.equal("6 faults in the mapping files:");
    expect(lines).to.have.length(6);
    for (const line of lines)
      expect(line.trim().startsWith(`${folder.configDir}/resources/`), line).to.equal(true);
    folder.remove();
  });
});
