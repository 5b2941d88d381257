/** Outcomes have colors of their own; other lines take one after the other. */

const OUTCOMES = new Set(["succeeded", "failed", "timed_out", "lost", "snoozed", "cancelled"]);

export const colorOf = (name: string, at: number): string =>
  OUTCOMES.has(name) ? `var(--jq-chart-${name})` : `var(--jq-chart-${(at % 8) + 1})`;
