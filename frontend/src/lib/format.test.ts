import { describe, expect, it } from "vitest";
import {
  age,
  briefCount,
  count,
  duration,
  exact,
  percent,
  percentile,
  plural,
  relative,
  short,
  tick,
  zoneName,
} from "./format";

describe("durations", () => {
  it.each([
    [0, "0 s"],
    [0.0004, "1 ms"],
    [0.25, "250 ms"],
    [0.9999, "1 s"],
    [1.24, "1.2 s"],
    [9.96, "10 s"],
    [59.6, "1 min"],
    [250, "4 min 10 s"],
    [3_600, "1 h"],
    [11_100, "3 h 5 min"],
    [187_200, "2 d 4 h"],
    [null, "–"],
    [Number.NaN, "–"],
    [-3, "0 s"],
  ])("%s seconds are %s", (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });
});

describe("latencies", () => {
  it("have one unit on an axis, which keeps its labels short", () => {
    expect([0.001, 0.1, 1, 100, 10_000].map(tick)).toEqual([
      "1 ms",
      "100 ms",
      "1 s",
      "100 s",
      "10,000 s",
    ]);
  });

  it("have no percentile of a few samples", () => {
    expect(percentile({ count: 4 }, 0.447)).toBe("–");
    expect(percentile({ count: 5 }, 0.447)).toBe("447 ms");
    expect(percentile(undefined, 0.447)).toBe("–");
  });
});

describe("counts", () => {
  it("says whether it is exact, a bound or an estimate", () => {
    expect(count({ value: 12, relation: "eq" })).toBe("12");
    expect(count({ value: 10_000, relation: "gte" })).toBe("10,000+");
    expect(count({ value: 2_000_000, relation: "estimate" })).toBe("~2,000,000");
    expect(count(undefined)).toBe("–");
  });

  it("is short where there is little room", () => {
    expect(briefCount({ value: 99_999, relation: "eq" })).toBe("99,999");
    expect(briefCount({ value: 2_345_678, relation: "estimate" })).toBe("~2.3M");
    expect(briefCount({ value: 100_000, relation: "gte" })).toBe("100K+");
    expect(briefCount({ value: 1_200_000, relation: "eq" })).toBe("1.2M");
    expect(short(9_999)).toBe("9,999");
    expect(short(12_345)).toBe("12.3K");
    expect(short(0.25)).toBe("0.3");
  });
});

describe("times", () => {
  const now = Date.parse("2026-07-14T10:00:00Z");

  it("tells how far away they are", () => {
    expect(relative("2026-07-14T09:58:00Z", now)).toBe("2 min ago");
    expect(relative("2026-07-14T10:00:05Z", now)).toBe("in 5 s");
    expect(relative("2026-07-14T10:00:00.4Z", now)).toBe("now");
    expect(relative("2026-07-14T10:00:01.9Z", now)).toBe("now");
    expect(relative("2026-07-14T10:00:02Z", now)).toBe("in 2 s");
    expect(relative(null, now)).toBe("–");
  });

  it("names the zone of an exact time", () => {
    expect(exact("2026-07-14T09:58:00Z", "utc")).toContain("UTC");
    expect(exact(null, "utc")).toBe("–");
  });
});

it("knows one from many", () => {
  expect(plural(1, "job")).toBe("1 job");
  expect(plural(1_200, "job")).toBe("1,200 jobs");
  expect(percent(0.051)).toBe("5.1 %");
});

it("tells an age that goes with the clock in whole seconds", () => {
  expect([0, 0.8, 1.9, 65, null].map(age)).toEqual(["< 1 s", "< 1 s", "1 s", "1 min 5 s", "–"]);
});

it("names the zone of the browser as exact times do", () => {
  expect(exact("2026-01-02T03:04:05Z", "local")).toContain(
    zoneName(Date.parse("2026-01-02T03:04:05Z")),
  );
});
