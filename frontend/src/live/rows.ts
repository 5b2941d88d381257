/**
 * What changes do to a list on the screen: rows that are shown are patched in place, others are only
 * counted ("12 new jobs"), so nothing ever moves under a finger. Pure.
 */

import type { Count } from "../lib/format";
import type { Change } from "./protocol";

export interface Row {
  id: string;
  state: string;
  version: number;
  error_class?: string;
  error_message?: string;
}

/** A job that has succeeded has no current error, whatever the row said before. */
const NO_ERROR = { error_class: "", error_message: "" };

export interface Patched<R extends Row> {
  rows: R[];
  /** Rows that have changed: what beside their state, must be read. */
  stale: string[];
  /** Jobs that belong on the page and are not shown yet. */
  fresh: string[];
  /** Rows whose job was deleted, or may no longer be seen. */
  gone: string[];
}

/** Keep the last word on each job: several changes of one frame count once. */
export function coalesced(changes: readonly Change[]): Map<string, Change> {
  const latest = new Map<string, Change>();
  for (const change of changes) {
    const before = latest.get(change.id);
    if (before === undefined || change.gone || versionOf(change) >= versionOf(before)) {
      latest.set(change.id, change);
    }
  }
  return latest;
}

const versionOf = (change: Change): number => change.version ?? 0;

export function patch<R extends Row>(rows: readonly R[], changes: readonly Change[]): Patched<R> {
  const latest = coalesced(changes);
  const stale: string[] = [];
  const gone: string[] = [];
  const patched = rows.map((row) => {
    const change = latest.get(row.id);
    latest.delete(row.id);
    if (change?.gone) gone.push(row.id);
    if (change === undefined || change.gone || versionOf(change) <= row.version) return row;
    stale.push(row.id);
    const state = change.state ?? row.state;
    return { ...row, ...(state === "succeeded" && NO_ERROR), state };
  });
  const fresh = [...latest.values()].filter((change) => change.new).map((change) => change.id);
  return { rows: stale.length === 0 ? (rows as R[]) : patched, stale, fresh, gone };
}

/** Put rows that were read again in their places, unless what is shown is newer. */
export function refreshed<R extends Row>(rows: readonly R[], read: readonly R[]): R[] {
  const byId = new Map(read.map((row) => [row.id, row]));
  return rows.map((row) => {
    const now = byId.get(row.id);
    return now !== undefined && now.version >= row.version ? now : row;
  });
}

/**
 * Raise counts to what is seen: of each state there are at least as many jobs as rows that show it.
 * A count may be some seconds older than a row that was just pushed, and would deny it.
 */
export function atLeastShown(
  counts: Readonly<Record<string, Count>>,
  rows: readonly Pick<Row, "state">[],
): Record<string, Count> {
  const shown = (state: string) => rows.filter((row) => row.state === state).length;
  return Object.fromEntries(
    Object.entries(counts).map(([state, count]) => {
      const seen = shown(state);
      return [state, count.value < seen ? { ...count, value: seen } : count];
    }),
  );
}
