import { describe, expect, it } from "vitest";
import { callOf, fieldsOf } from "./schema";

const kwargs = {
  type: "object",
  properties: {
    order_id: { type: "integer", minimum: 1 },
    note: { type: "string", default: "" },
    ratio: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
    express: { type: "boolean", default: false },
    size: { enum: ["s", "m"], default: "m" },
    lines: { type: "array", items: { type: "integer" } },
  },
  required: ["order_id", "lines"],
};
const fields = fieldsOf({ type: "array", items: false }, kwargs);

describe("fields", () => {
  it("are of the kinds that the schema says", () => {
    expect(fields.map(({ name, kind, required }) => [name, kind, required])).toEqual([
      ["order_id", "whole", true],
      ["note", "text", false],
      ["ratio", "number", false],
      ["express", "switch", false],
      ["size", "choice", false],
      ["lines", "json", true],
    ]);
    expect(fields[2]?.nullable).toBe(true);
    expect(fields[0]?.hint).toBe("at least 1");
  });

  it("have those that go by their place only, too", () => {
    const args = { prefixItems: [{ title: "path", type: "string" }, { title: "order_id" }] };
    const [first] = fieldsOf(args, kwargs);
    expect(first).toMatchObject({ name: "path", byPlace: true, required: true });
    expect(fieldsOf(args, kwargs)).toHaveLength(7);
  });
});

describe("what is sent", () => {
  it("has the JSON type of the field, and leaves out what was left empty", () => {
    const written = { order_id: "42", note: "", lines: "[1, 2]", express: "true", size: '"s"' };
    expect(callOf(fields, written)).toEqual({
      call: { args: [], kwargs: { order_id: 42, express: true, size: "s", lines: [1, 2] } },
      errors: {},
    });
  });

  it("is not sent where a field is wrong, and says which", () => {
    const { errors } = callOf(fields, { order_id: "4.5", lines: "[1", ratio: "x" });
    expect(Object.keys(errors).sort()).toEqual(["lines", "order_id", "ratio"]);
    expect(callOf(fields, {}).errors.order_id).toBe("is needed");
  });
});
