/** Which workers died when, and which have come in the place of those that went. Pure. */

import { number } from "./format";
import { hasStopped } from "./words";

/** So long a worker that died is told of beside those that live. */
export const LATELY_SECONDS = 300;

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

/** Workers that died of late, not those that were stopped, nor processes of other kinds. */
export const diedLately = <D extends Pick<Dead, "kind" | "died_at" | "reason">>(
  dead: readonly D[],
  now: number,
): D[] =>
  dead.filter(
    (one) => one.kind === "worker" && !hasStopped(one) && goneFor(one, now) < LATELY_SECONDS,
  );

/** Some of so many: "3 of them". */
export function ofThem(some: number, all: number): string {
  if (all === 1) return some === 1 ? "and is" : "and is not";
  return `${some === 0 ? "none" : some === all ? "all" : number(some)} of them`;
}

/** What came of those that died, as the end of a sentence that counts them. */
export function deathsInWords(
  died: readonly { id: string }[],
  replaced: ReadonlyMap<string, number>,
): string {
  const others = died.filter((one) => replaced.has(one.id)).length;
  if (died.length === 1 && others === 1)
    return "; it was replaced, and others took over what it ran.";
  if (others === died.length) return "; each was replaced, and others took over what they ran.";
  return `, ${ofThem(others, died.length)} replaced; what they ran goes to others.`;
}
