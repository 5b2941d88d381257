/** Periods that charts and lists look back over. */

export const PERIODS = ["15m", "1h", "6h", "24h", "7d"] as const;
export type Period = (typeof PERIODS)[number];

export const PERIOD_SECONDS: Record<Period, number> = {
  "15m": 900,
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
};
