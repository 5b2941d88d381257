/**
 * The last two minutes as they were told, for the chart of that name. Pure.
 *
 * A sample a second at most; `done` are attempts that ended since the sample before.
 */

import type { StatsChange } from "./protocol";

/** What is shown. */
export const KEPT_MS = 120_000;
/** What is kept: a little more, so that there is always something at the beginning of what is shown. */
export const HELD_MS = KEPT_MS + 5_000;
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
  const kept = pulse.samples.filter((one) => at - one.at <= HELD_MS);
  const last = kept.at(-1);
  if (last !== undefined && at - last.at < APART_MS) {
    const merged = { ...sample, at: last.at, done: last.done + ended };
    return { samples: [...kept.slice(0, -1), merged], attempts };
  }
  return { samples: [...kept, sample], attempts };
}

/** Over which a rate is told: wherever it stands, its window stands beside it. */
export const RATE_MS = 5_000;

/** Attempts that ended per second in the last `ms` that were told: 0 as soon as none ended in them. */
export function rate({ samples }: Pulse, ms = RATE_MS): number {
  const last = samples.at(-1);
  const first = samples.find((one) => last !== undefined && last.at - one.at <= ms);
  if (first === undefined || last === undefined) return 0;
  const ended = samples.slice(samples.indexOf(first) + 1).reduce((sum, one) => sum + one.done, 0);
  return ended / Math.max(1, (last.at - first.at) / 1_000);
}

export const BAR_MS = 2_000;

export interface Bar {
  from: number;
  perSecond: number;
}

/**
 * Attempts a second in each whole BAR_MS, on the clock. What a sample tells of has happened since the
 * one before, evenly as far as is known; the beginning and what is not over yet are left out.
 */
export function bars({ samples }: Pulse): Bar[] {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return [];
  const from = Math.ceil(first.at / BAR_MS);
  const counts = new Array<number>(Math.max(0, Math.floor(last.at / BAR_MS) - from)).fill(0);
  for (const [at, one] of samples.entries()) {
    const before = samples[at - 1];
    if (before === undefined || one.done === 0) continue;
    for (let bar = Math.floor(before.at / BAR_MS); bar * BAR_MS < one.at; bar += 1) {
      const since = Math.max(before.at, bar * BAR_MS);
      const until = Math.min(one.at, (bar + 1) * BAR_MS);
      const share = (until - since) / (one.at - before.at);
      const known = counts[bar - from];
      if (known !== undefined) counts[bar - from] = known + one.done * share;
    }
  }
  return counts.map((count, at) => ({
    from: (from + at) * BAR_MS,
    perSecond: (count * 1_000) / BAR_MS,
  }));
}
