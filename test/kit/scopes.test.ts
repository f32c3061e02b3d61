import { expect } from "chai";
import { includesScope, isScope, missingScope, scopeFault } from "../../src/kit/scopes.ts";

const resources = ["orders", "customers"];

describe("includesScope", () => {
  // The held scope, then all needed ones that it includes.
  const needed = ["orders:read", "orders:write", "customers:read", "read", "write", "webhooks", "admin", "*"];
  for (const [held, included] of [
    ["*", needed],
    ["read", ["orders:read", "customers:read", "read"]],
    ["write", ["orders:read", "orders:write", "customers:read", "read", "write"]],
    ["orders:read", ["orders:read"]],
    ["orders:write", ["orders:read", "orders:write"]],
    ["webhooks", ["webhooks"]],
    ["admin", ["admin"]],
  ] as const) {
    it(`treats ${held} as ${included.join(", ")}`, () => {
      expect(needed.filter((one) => includesScope([held], one))).to.deep.equal(included);
    });
  }

  it("includes * only in * itself", () => {
    const all = ["read", "write", "webhooks", "admin", "orders:write"];

    expect(includesScope(all, "*")).to.equal(false);
    expect(includesScope([], "orders:read")).to.equal(false);
  });

  it("finds no resource by a part of its name", () => {
    expect(includesScope(["orders:read"], "order:read")).to.equal(false);
    expect(includesScope(["order:read"], "orders:read")).to.equal(false);
  });
});

describe("scopeFault", () => {
  it("accepts plain scopes and those of existing resources", () => {
    for (const scope of ["*", "read", "write", "webhooks", "admin", "orders:read", "customers:write"])
      expect(scopeFault(scope, resources), scope).to.equal(undefined);
  });

  it("suggests the resource that was probably meant", () => {
    expect(scopeFault("order:read", resources)).to.equal("There is no resource order; did you mean orders?");
  });

  for (const scope of ["", "Read", "orders", "orders:delete", "orders:*", "*:read:x", "a b:read", "toString"])
    it(`refuses "${scope}"`, () => {
      expect(scopeFault(scope, resources)).to.match(/^A scope is one of \*, read, write/);
      expect(isScope(scope)).to.equal(false);
    });
});

describe("missingScope", () => {
  it("names the first scope that is not held", () => {
    expect(missingScope(["read"], ["orders:read", "orders:write", "admin"])).to.equal("orders:write");
    expect(missingScope(["read", "webhooks"], ["webhooks", "read"])).to.equal(undefined);
  });
});
