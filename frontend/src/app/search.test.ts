import { describe, expect, it } from "vitest";
import { parseSearch, stringifySearch, text, within } from "./search";

describe("addresses", () => {
  it("hold a filter so that a person can read and write it", () => {
    const written = stringifySearch({ q: 'state:dead,ready tag:"order:42"', older: undefined });
    expect(written).toBe('?q=state:dead,ready+tag:"order:42"');
    expect(parseSearch(written)).toEqual({ q: 'state:dead,ready tag:"order:42"' });
  });

  it.each(["a&b=c", "100%", "a+b", "é ✓", "#x"])("hold %s as it is", (q) => {
    expect(parseSearch(stringifySearch({ q }))).toEqual({ q });
  });

  it("are short where nothing is said", () => {
    expect(stringifySearch({ q: "", page: undefined })).toBe("");
  });
});

it("takes what it knows and no more", () => {
  expect(within("1h", ["1h", "6h"])).toBe("1h");
  expect(within("2h", ["1h", "6h"])).toBeUndefined();
  expect(text(42)).toBeUndefined();
});
