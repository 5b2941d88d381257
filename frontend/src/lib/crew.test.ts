import { expect, it } from "vitest";
import { deathMarks, deathsInWords, diedLately, goneFor, replacements } from "./crew";

const now = Date.parse("2026-07-14T10:00:00Z");
const ago = (seconds: number) => new Date(now - seconds * 1_000).toISOString();
const here = (name: string, pid: number, started: number) => ({
  kind: "worker",
  name,
  pid,
  started_at: ago(started),
});
const gone = (name: string, pid: number, started: number, died: number) => ({
  ...here(name, pid, started),
  id: `${name}/${pid}`,
  seen_at: ago(died),
});

it("follows a name from death to death", () => {
  const dead = [gone("one", 2, 50, 20), gone("one", 1, 90, 60), gone("two", 7, 90, 30)];
  const found = replacements([here("one", 3, 10)], dead);
  expect([...found]).toEqual([
    ["one/1", 2],
    ["one/2", 3],
  ]);
});

it("takes one start for one replacement, where processes share a name", () => {
  const dead = [gone("one", 1, 90, 30), gone("one", 2, 90, 20)];
  const found = replacements([here("one", 3, 10), here("one", 4, 90)], dead);
  expect([...found]).toEqual([["one/1", 3]]);
});

it("takes no worker of another kind, nor one that was there before", () => {
  const scheduler = { ...here("one", 3, 10), kind: "scheduler" };
  expect(replacements([scheduler, here("one", 4, 60)], [gone("one", 1, 90, 30)]).size).toBe(0);
});

it("marks a death at its own time, however old the answer, and nothing else", () => {
  const dead = { ...here("one", 7, 90), host: "here", died_at: ago(12), reason: "killed" };
  const early = { ...dead, dead_seconds: 12 };
  const late = { ...dead, dead_seconds: 14.4 };
  const stopped = { ...dead, pid: 8, reason: "stopped" };
  const reaper = { ...dead, pid: 9, kind: "reaper" };
  const mark = { at: now - 12_000, label: "one (7) died" };
  expect(deathMarks([early, stopped, reaper])).toEqual([mark]);
  expect(deathMarks([late])).toEqual([mark]);
});

it("goes on telling how long a worker is gone, though nothing new is read of it", () => {
  const dead = { died_at: ago(12), dead_seconds: 1 };
  expect(goneFor(dead, now)).toBe(12);
  expect(goneFor(dead, now + 60_000)).toBe(72);
  expect(goneFor(dead, now - 13_000)).toBe(0);
});

it("tells of workers that died of late, not of those that were stopped, of others, nor of old", () => {
  const dead = { ...here("one", 7, 900), host: "here", died_at: ago(12), reason: "killed" };
  const stopped = { ...dead, reason: "stopped" };
  const reaper = { ...dead, kind: "reaper" };
  const old = { ...dead, died_at: ago(400) };
  expect(diedLately([dead, stopped, reaper, old], now)).toEqual([dead]);
});

it("says what came of those that died", () => {
  const died = [{ id: "a" }, { id: "b" }];
  const both = new Map([
    ["a", 1],
    ["b", 2],
  ]);
  expect(deathsInWords(died, both)).toBe(
    "; each was replaced, and others took over what they ran.",
  );
  expect(deathsInWords(died, new Map([["a", 1]]))).toMatch(/^, 1 of them replaced; /);
  expect(deathsInWords([{ id: "a" }], new Map())).toMatch(/^, and is not replaced; /);
  expect(deathsInWords([{ id: "a" }], both)).toMatch(/^; it was replaced, /);
});
