import { expect } from "chai";
import {
  fieldNameOf,
  freeName,
  joinedName,
  modelNameOf,
  resourceNameOf,
  singularNameOf,
} from "../../../src/mapping/import/names.ts";

const tables: readonly (readonly [table: string, resource: string, model: string])[] = [
  ["orders", "orders", "Order"],
  ["order_lines", "order_lines", "OrderLine"],
  ["OrderLines", "order_lines", "OrderLine"],
  ["ORDER_LINES", "order_lines", "OrderLine"],
  ["Order Details", "order_details", "OrderDetail"],
  ["auth_user", "auth_user", "AuthUser"],
  ["tblKundenAufträge", "tbl_kunden_auftraege", "TblKundenAuftraege"],
  ["AUFTRÄGE", "auftraege", "Auftraege"],
  ["HTTPLogEntries", "http_log_entries", "HttpLogEntry"],
  ["categories", "categories", "Category"],
  ["boxes", "boxes", "Box"],
  ["addresses", "addresses", "Address"],
  ["statuses", "statuses", "Status"],
  ["status", "status", "Status"],
  ["people", "people", "Person"],
  ["news", "news", "News"],
  ["movies", "movies", "Movie"],
  ["houses", "houses", "House"],
  ["data", "data", "Datum"],
  ["2024 Übersicht", "t_2024_uebersicht", "T2024Uebersicht"],
  ["Заказы", "zakazy", "Zakazy"],
  ["Πελάτες", "pelates", "Pelate"],
  ["Çalışanlar", "calisanlar", "Calisanlar"],
  ["訂單", "table", "Table"],
  ["😀", "table", "Table"],
  ["a.b-c d", "a_b_c_d", "ABCD"],
  ["_hidden_", "hidden", "Hidden"],
  ["n".repeat(63), "n".repeat(48), `N${"n".repeat(47)}`],
];

describe("resourceNameOf and modelNameOf", () => {
  for (const [table, resource, model] of tables)
    it(`make ${resource} and ${model} of ${table}`, () => {
      const name = resourceNameOf(table, "table");

      expect([name, modelNameOf(name)]).to.deep.equal([resource, model]);
    });
});

describe("fieldNameOf", () => {
  const columns: readonly (readonly [column: string, field: string])[] = [
    ["customer_id", "customer_id"],
    ["CustomerID", "CustomerID"],
    ["KUNDEN_NR", "KUNDEN_NR"],
    ["group by", "group_by"],
    ["1st", "c_1st"],
    ["größe", "groesse"],
    ["ÄNDERUNG", "AENDERUNG"],
    ["Änderung", "Aenderung"],
    ["STRAßE", "STRASSE"],
    ["Straße-Nr.", "Strasse_Nr"],
    ["цена", "tsena"],
    ["編號", "column_3"],
    ["_id", "id"],
    ["$price", "price"],
  ];
  for (const [column, field] of columns)
    it(`makes ${field} of ${column}`, () => {
      expect(fieldNameOf(column, "column_3")).to.equal(field);
    });
});

describe("singularNameOf", () => {
  it("makes one of the last word only", () => {
    expect(["sales_people", "goods_movements", "address", "oxen"].map(singularNameOf)).to.deep.equal([
      "sales_person",
      "goods_movement",
      "address",
      "oxen",
    ]);
  });
});

describe("joinedName", () => {
  it("keeps the case of the first name", () => {
    expect([
      joinedName("SOLL", "konto"),
      joinedName("createdBy", "sales_person"),
      joinedName("Owner", "user"),
      joinedName("created_by", "user"),
      joinedName("author", "user"),
    ]).to.deep.equal(["SOLL_KONTO", "createdBySalesPerson", "OwnerUser", "created_by_user", "author_user"]);
  });
});

describe("freeName", () => {
  it("takes the first name that is free and short enough, else the first with a number", () => {
    const taken = new Set(["a", "b", "a_2"]);
    const isTaken = (name: string): boolean => taken.has(name);

    expect(freeName(["a", "c", "d"], isTaken)).to.equal("c");
    expect(freeName(["a", "b"], isTaken)).to.equal("a_3");
    expect(freeName(["x".repeat(70)], isTaken)).to.equal(`${"x".repeat(61)}_2`);
  });
});
