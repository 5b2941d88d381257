/**
 * The last two minutes as they were told: what the chart "Right now" draws. Pure.
 *
 * A sample a second at most; `done` are attempts that ended since the sample before.
 */

import type { StatsChange } from "./protocol";

export const KEPT_MS = 120_000;
const APART_MS = 900;

export interface Sample {
  at: number;
  ready: number;
  running: number;
  waiting: number;
  done: number;
}

export interface Pulse {
  samples: readonly Sample[];
  attempts: number | null;
}

export const NO_PULSE: Pulse = { samples: [], attempts: null };

/** Return `pulse` with what is known at `at`; samples that come too fast are one. */
export function beaten(pulse: Pulse, stats: StatsChange, at: number): Pulse {
  const value = (state: string) => stats.counts?.[state]?.value ?? 0;
  const attempts = stats.attempts ?? null;
  const ended =
    attempts === null || pulse.attempts === null ? 0 : Math.max(0, attempts - pulse.attempts);
  const sample: Sample = {
    at,
    ready: value("ready"),
    running: value("running"),
    waiting: value("retrying") + value("scheduled") + value("blocked"),
    done: ended,
  };
  const kept = pulse.samples.filter((one) => at - one.at <= KEPT_MS);
  const last = kept.at(-1);
  if (last !== undefined && at - last.at < APART_MS) {
    const merged = { ...sample, at: last.at, done: last.done + ended };
    return { samples: [...kept.slice(0, -1), merged], attempts };
  }
  return { samples: [...kept, sample], attempts };
}

/** Attempts a second over the last `ms`. */
export function rate(pulse: Pulse, now: number, ms = 10_000): number {
  const lately = pulse.samples.filter((one) => now - one.at <= ms);
  const first = lately[0];
  if (first === undefined) return 0;
  const seconds = Math.max(1, (now - first.at) / 1_000);
  return lately.reduce((sum, one) => sum + one.done, 0) / seconds;
}
