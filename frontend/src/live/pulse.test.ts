import { expect, it } from "vitest";
import { bars, beaten, HELD_MS, NO_PULSE, RATE_MS, rate } from "./pulse";

const stats = (ready: number, attempts: number) => ({
  counts: { ready: { value: ready, relation: "eq" as const } },
  attempts,
});

it("takes the growth of the counter for what was done", () => {
  let pulse = beaten(NO_PULSE, stats(10, 1_000), 0);
  pulse = beaten(pulse, stats(6, 1_004), 1_000);
  pulse = beaten(pulse, stats(0, 1_010), 2_000);
  expect(pulse.samples.map((one) => [one.ready, one.done])).toEqual([
    [10, 0],
    [6, 4],
    [0, 6],
  ]);
  expect(rate(pulse)).toBe(5);
});

it("joins what comes faster than it can be drawn, and loses nothing of it", () => {
  let pulse = beaten(NO_PULSE, stats(9, 0), 0);
  pulse = beaten(pulse, stats(8, 3), 1_000);
  pulse = beaten(pulse, stats(7, 5), 1_250);
  expect(pulse.samples.map((one) => [one.at, one.ready, one.done])).toEqual([
    [0, 9, 0],
    [1_000, 7, 5],
  ]);
});

it("keeps little more than two minutes, and takes a counter that begins anew for nothing done", () => {
  let pulse = beaten(NO_PULSE, stats(1, 50), 0);
  pulse = beaten(pulse, stats(1, 3), HELD_MS + 1);
  expect(pulse.samples).toHaveLength(1);
  expect(pulse.samples[0]?.done).toBe(0);
  expect(rate(NO_PULSE)).toBe(0);
});

it("draws attempts a second, however far apart samples are, and nothing that is not over", () => {
  let pulse = beaten(NO_PULSE, stats(0, 100), 1_000);
  pulse = beaten(pulse, stats(0, 112), 4_000);
  pulse = beaten(pulse, stats(0, 114), 5_000);
  pulse = beaten(pulse, stats(0, 118), 7_000);
  expect(bars(pulse)).toEqual([
    { from: 2_000, perSecond: 4 },
    { from: 4_000, perSecond: 2 },
  ]);
  expect(bars(NO_PULSE)).toEqual([]);
});

it("tells a rate of the last seconds alone, which is none as soon as nothing ended in them", () => {
  let pulse = beaten(NO_PULSE, stats(90, 0), 0);
  pulse = beaten(pulse, stats(0, 90), 1_000);
  expect(rate(pulse)).toBe(90);
  for (let at = 2_000; at <= RATE_MS; at += 1_000) pulse = beaten(pulse, stats(0, 90), at);
  expect(rate(pulse)).toBe(18);
  pulse = beaten(pulse, stats(0, 90), RATE_MS + 1_000);
  expect(rate(pulse)).toBe(0);
});
