/** How long to wait before the next try: doubling, capped, and spread so that viewers do not come
 * back all at once when a server returns. */

export const FIRST_MS = 500;
export const CAP_MS = 30_000;

export function backoff(failures: number, random: () => number = Math.random): number {
  const whole = Math.min(CAP_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(whole * (0.5 + random() / 2));
}
