/**
 * The server's time, once a second, for ages on the screen ("3 s ago").
 *
 * Ages are told by the server's clock: that of the viewer's machine may be off by minutes. The
 * offset is learned from the Date header of answers, which is good to a second.
 */

import { useSyncExternalStore } from "react";

let offset = 0;
let now = Date.now();
const watchers = new Set<() => void>();
let timer: number | null = null;

export function learn(date: string | null): void {
  const said = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(said)) return;
  const found = said - Date.now();
  // The header has whole seconds: less than two may be rounding and travel.
  offset = Math.abs(found) < 2_000 ? 0 : found;
}

export const serverNow = (): number => Date.now() + offset;

/** What the server's clock showed when this machine's showed `at`. */
export const serverTime = (at: number): number => at + offset;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= window.setInterval(() => {
    now = serverNow();
    for (const each of watchers) each();
  }, 1_000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size === 0 && timer !== null) {
      window.clearInterval(timer);
      timer = null;
    }
  };
}

export const useNow = (): number => useSyncExternalStore(watch, () => now);
