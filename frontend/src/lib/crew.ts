/** Which workers died when, and which have come in the place of those that went. Pure. */

import { hasStopped } from "./words";

export interface Gone {
  id: string;
  kind: string;
  name: string;
  pid: number;
  started_at: string;
  seen_at: string;
}

export interface Here {
  kind: string;
  name: string;
  pid: number;
  started_at: string;
}

/**
 * Return the pid of the process that replaced each of `gone`, by its id; those that nobody replaced
 * are missing. Of one name a start replaces one that was seen for the last time before it, the one
 * that waits longest: that it is dead is known later, and then another may be there already.
 */
export function replacements(
  here: readonly Here[],
  gone: readonly Gone[],
): ReadonlyMap<string, number> {
  const events = [
    ...[...here, ...gone].map((one) => ({ ...one, at: Date.parse(one.started_at), went: "" })),
    ...gone.map((one) => ({ ...one, at: Date.parse(one.seen_at), went: one.id })),
  ].sort((a, b) => a.at - b.at);
  const waiting = new Map<string, string[]>();
  const found = new Map<string, number>();
  for (const { kind, name, pid, went } of events) {
    const place = `${kind} ${name}`;
    const queue = waiting.get(place) ?? [];
    waiting.set(place, queue);
    if (went !== "") {
      queue.push(went);
    } else {
      const id = queue.shift();
      if (id !== undefined) found.set(id, pid);
    }
  }
  return found;
}

export interface Dead {
  kind: string;
  name: string;
  host: string;
  pid: number;
  died_at: string;
  reason: string;
}

/**
 * Where the deaths of workers stand in a chart, on the server's clock. Not by their age: an answer that was long
 * on its way would move them.
 */
export const deathMarks = (dead: readonly Dead[]): { at: number; label: string }[] =>
  dead
    .filter((one) => one.kind === "worker" && !hasStopped(one))
    .map((worker) => ({
      at: Date.parse(worker.died_at),
      label: `${worker.name || worker.host} (${worker.pid}) died`,
    }));

/** For how many seconds a worker is gone; what was read of it only says how many it was then. */
export const goneFor = ({ died_at }: Pick<Dead, "died_at">, now: number): number =>
  Math.max(0, now - Date.parse(died_at)) / 1_000;
