/** Periods that charts and lists look back over: in addresses, in seconds, and as they are read. */

export const PERIODS = ["15m", "1h", "6h", "24h", "7d"] as const;
export type Period = (typeof PERIODS)[number];

export const PERIOD_SECONDS: Record<Period, number> = {
  "15m": 900,
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
};

const PERIOD_NAMES: Record<Period, string> = {
  "15m": "15 min",
  "1h": "1 h",
  "6h": "6 h",
  "24h": "24 h",
  "7d": "7 d",
};

/** As they are read behind "in the last". */
export const PERIOD_WORDS: Record<Period, string> = { ...PERIOD_NAMES, "1h": "hour" };

export const PERIOD_CHOICES = PERIODS.map((one) => [one, PERIOD_NAMES[one]] as const);
