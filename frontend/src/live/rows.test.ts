import { describe, expect, it } from "vitest";
import { atLeastShown, coalesced, patch, refreshed } from "./rows";

const rows = [
  { id: "03", state: "ready", version: 1 },
  { id: "02", state: "running", version: 4 },
];

describe("changes", () => {
  it("count once a job, the latest wins whatever the order", () => {
    const latest = coalesced([
      { id: "a", state: "running", version: 2 },
      { id: "a", state: "succeeded", version: 3 },
      { id: "a", state: "ready", version: 1 },
    ]);
    expect([...latest.values()]).toEqual([{ id: "a", state: "succeeded", version: 3 }]);
  });

  it("patch a row that is shown where it stands", () => {
    const { rows: after, stale, fresh } = patch(rows, [{ id: "02", state: "dead", version: 5 }]);
    expect(after.map((row) => [row.id, row.state])).toEqual([
      ["03", "ready"],
      ["02", "dead"],
    ]);
    expect(stale).toEqual(["02"]);
    expect(fresh).toEqual([]);
  });

  it("take the error away from a row that has succeeded, before it is read again", () => {
    const failing = { ...rows[1], id: "02", version: 4, error_class: "E", error_message: "no" };
    const patched = (state: string) =>
      patch([{ ...failing, state: "running" }], [{ id: "02", state, version: 5 }]).rows[0];
    expect(patched("succeeded")).toMatchObject({ error_class: "", error_message: "" });
    expect(patched("dead")).toMatchObject({ error_class: "E", error_message: "no" });
  });

  it("never go back to an older version", () => {
    const patched = patch(rows, [{ id: "02", state: "ready", version: 4 }]);
    expect(patched.rows).toBe(rows);
    expect(patched.stale).toEqual([]);
  });

  it("count new jobs without moving the list", () => {
    const { rows: after, fresh } = patch(rows, [
      { id: "04", state: "ready", version: 0, new: true },
      { id: "01", state: "dead", version: 9 },
    ]);
    expect(after).toBe(rows);
    expect(fresh).toEqual(["04"]);
  });

  it("leave a row whose job is gone where it is, and say so", () => {
    const { rows: after, gone } = patch(rows, [{ id: "03", gone: true }]);
    expect(after).toBe(rows);
    expect(gone).toEqual(["03"]);
  });
});

it("puts what was read again in place, unless it is older than what is shown", () => {
  const read = [
    { id: "02", state: "succeeded", version: 5 },
    { id: "03", state: "ready", version: 0 },
  ];
  expect(refreshed(rows, read).map((row) => row.version)).toEqual([1, 5]);
});

it("counts no fewer jobs of a state than rows show, and leaves higher counts alone", () => {
  const counts = {
    ready: { value: 0, relation: "eq" as const },
    running: { value: 14, relation: "estimate" as const },
  };
  const rows = [{ state: "ready" }, { state: "running" }, { state: "succeeded" }];
  expect(atLeastShown(counts, rows)).toEqual({
    ready: { value: 1, relation: "eq" },
    running: { value: 14, relation: "estimate" },
  });
});
