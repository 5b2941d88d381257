/**
 * What a viewer has chosen: the theme, which is the admin's own (`localStorage.theme` and
 * `data-theme`), and the zone that times are shown in. Both are shared by all tabs.
 */

import { useSyncExternalStore } from "react";
import type { Zone } from "../lib/format";

export type Theme = "auto" | "light" | "dark";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const ZONE_KEY = "jobqueue.zone";

const watchers = new Set<() => void>();

function read(key: string): string | null {
  try {
    return window.localStorage.getItem(key);
  } catch {
    return null; // storage is forbidden: the choice lasts as long as the page
  }
}

function write(key: string, value: string): void {
  try {
    window.localStorage.setItem(key, value);
  } catch {
    // as above
  }
}

let theme: Theme = THEMES.find((one) => one === read("theme")) ?? "auto";
let zone: Zone = read(ZONE_KEY) === "utc" ? "utc" : "local";

function apply(): void {
  document.documentElement.dataset.theme = theme;
  for (const watcher of watchers) watcher();
}

window.addEventListener("storage", (event) => {
  if (event.key === "theme") theme = THEMES.find((one) => one === event.newValue) ?? "auto";
  else if (event.key === ZONE_KEY) zone = event.newValue === "utc" ? "utc" : "local";
  else return;
  apply();
});
apply();

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export const useTheme = (): Theme => useSyncExternalStore(watch, () => theme);
export const useZone = (): Zone => useSyncExternalStore(watch, () => zone);

/** Go on to the next theme, in the order of the admin's own button. */
export function nextTheme(): void {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
  write("theme", theme);
  apply();
}

export function otherZone(): void {
  zone = zone === "utc" ? "local" : "utc";
  write(ZONE_KEY, zone);
  apply();
}
