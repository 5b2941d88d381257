import { describe, expect, it } from "vitest";
import { accept, inWords, quoted, suggestions, termOf, tokens, withTerm } from "./filter";

describe("tokens", () => {
  it("cuts at spaces and keeps quotes together", () => {
    const found = tokens('state:dead -queue:mail args.user_id:42 "no such order" created>-2h');
    expect(
      found.map(({ key, operator, value, negated }) => [key, operator, value, negated]),
    ).toEqual([
      ["state", ":", "dead", false],
      ["queue", ":", "mail", true],
      ["args.user_id", ":", "42", false],
      ["", "", "no such order", false],
      ["created", ">", "-2h", false],
    ]);
  });

  it("reads an open quote to the end, and escapes", () => {
    expect(tokens('message:"say \\"hi').map((token) => token.value)).toEqual(['say "hi']);
  });

  it("knows where each stands", () => {
    expect(tokens("  a  b:c ").map((token) => [token.start, token.end])).toEqual([
      [2, 3],
      [5, 8],
    ]);
  });
});

describe("changing a term", () => {
  it("replaces what was said about the key and keeps the rest", () => {
    expect(withTerm("state:dead queue:mail order", "state", "ready")).toBe(
      "state:ready queue:mail order",
    );
    expect(withTerm("state:dead queue:mail", "state", null)).toBe("queue:mail");
    expect(withTerm("-queue:mail", "queue", "a b")).toBe('queue:"a b" -queue:mail');
  });

  it("quotes what would be read as something else", () => {
    expect(quoted("mail")).toBe("mail");
    expect(quoted("order:42")).toBe('"order:42"');
    expect(quoted('a"b')).toBe('"a\\"b"');
    expect(quoted("-x")).toBe('"-x"');
  });

  it("finds what it has written", () => {
    expect(termOf(withTerm("", "tag", 'a "b" \\ c'), "tag")).toBe('a "b" \\ c');
    expect(termOf("-state:dead", "state")).toBeNull();
  });
});

describe("suggestions", () => {
  const known = { queue: ["default", "mail"], task: ["shop.tasks.send_receipt"] };
  const inserts = (text: string, caret = text.length) =>
    suggestions(text, caret, known).map((one) => one.insert);

  it("offers keys, then values", () => {
    expect(inserts("sta")).toEqual(["state:"]);
    expect(inserts("-que")).toEqual(["-queue:"]);
    expect(inserts("queue:")).toEqual(["queue:default", "queue:mail"]);
    expect(inserts("state:dead,re")).toEqual(["state:dead,ready", "state:dead,retrying"]);
    expect(inserts("task:receipt")).toEqual(["task:shop.tasks.send_receipt"]);
  });

  it("is silent once a value is complete, and where nothing is known", () => {
    expect(inserts("queue:mail")).toEqual([]);
    expect(inserts("created>-2")).toEqual([]);
    expect(inserts("args.user:")).toEqual([]);
  });

  it("puts the choice where the caret is", () => {
    expect(accept("sta queue:mail", 3, { insert: "state:", hint: "" })).toEqual([
      "state: queue:mail",
      6,
    ]);
    expect(accept("queue:ma", 8, { insert: "queue:mail", hint: "" })).toEqual(["queue:mail ", 11]);
    expect(accept("a ", 2, { insert: "state:", hint: "" })).toEqual(["a state:", 8]);
  });
});

it("says in words what is meant", () => {
  expect(inWords("state:dead,cancelled queue:mail -tag:vip refused")).toBe(
    "dead or cancelled, queue mail, not tag vip, with “refused”",
  );
  expect(inWords(" ")).toBe("live or dead");
});
