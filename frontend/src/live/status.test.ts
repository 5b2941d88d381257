import { describe, expect, it } from "vitest";
import { Reach } from "../api/reach";
import { intervalOf, modeOf, type Situation } from "./status";

const live: Situation = {
  phase: "open",
  refused: false,
  hasSocket: true,
  failures: 0,
  paused: false,
  hidden: false,
  lostAt: null,
};

describe("the status line", () => {
  it.each<[string, Partial<Situation>]>([
    ["live", {}],
    ["live", { lostAt: 1 }],
    ["connecting", { phase: "connecting" }],
    ["polling", { phase: "waiting", failures: 1 }],
    ["polling", { phase: "connecting", failures: 2 }],
    ["polling", { phase: "lagging" }],
    ["polling", { refused: true }],
    ["polling", { phase: "waiting", hasSocket: false }],
    ["offline", { phase: "waiting", failures: 1, lostAt: 1 }],
    ["paused", { paused: true }],
    ["paused", { hidden: true, phase: "paused" }],
    ["signed-out", { phase: "signed-out" }],
    ["signed-out", { phase: "forbidden", paused: true }],
  ])("says %s for %o", (mode, situation) => {
    expect(modeOf({ ...live, ...situation })).toBe(mode);
  });

  it("asks by itself only while nothing is pushed", () => {
    expect(intervalOf("live")).toBe(false);
    expect(intervalOf("paused")).toBe(false);
    expect(intervalOf("polling")).toBe(10_000);
    expect(intervalOf("offline")).toBe(3_000);
  });
});

it("remembers since when the server does not answer", () => {
  const reach = new Reach();
  let told = 0;
  reach.watch(() => {
    told += 1;
  });
  reach.lost(5);
  reach.lost(6);
  expect(reach.lostAt).toBe(5);
  reach.found(4);
  expect(reach.lostAt).toBe(5);
  reach.found();
  reach.found();
  expect(reach.lostAt).toBeNull();
  expect(told).toBe(2);
});
