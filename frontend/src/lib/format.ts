/**
 * Numbers, durations and times as people read them. Pure; "now" is always given.
 *
 * A count says what it knows: `12`, at least `10,000+`, about `~2,000,000`.
 */

export interface Count {
  value: number;
  relation: "eq" | "gte" | "estimate";
}

export type Zone = "local" | "utc";

const whole = new Intl.NumberFormat("en-US");
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value: number): string => whole.format(value);

/** At most four characters and a unit, for axes and tiles: 12.3K. */
export const short = (value: number): string =>
  Math.abs(value) < 10_000 ? whole.format(Math.round(value * 10) / 10) : compact.format(value);

export function count(of: Count | undefined): string {
  if (of === undefined) return "–";
  if (of.relation === "gte") return `${whole.format(of.value)}+`;
  return of.relation === "estimate" ? `~${whole.format(of.value)}` : whole.format(of.value);
}

/** The same where there is little room: from 100,000 on three figures, such as ~2.3M. */
export function briefCount(of: Count | undefined): string {
  if (of === undefined || of.value < 100_000) return count(of);
  const text = compact.format(of.value);
  if (of.relation === "eq") return text;
  return of.relation === "gte" ? `${text}+` : `~${text}`;
}

/** A duration in its two largest units: 3 ms, 1.2 s, 4 min 10 s, 3 h 5 min, 2 d 4 h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const past = Math.max(0, seconds);
  if (past === 0) return "0 s";
  if (past < 0.9995) return `${Math.max(1, Math.round(past * 1000))} ms`;
  if (past < 9.95) return `${(Math.round(past * 10) / 10).toString()} s`;
  return units(Math.round(past));
}

/** An age that goes with the clock, in whole seconds: "< 1 s", "12 s", "3 min 5 s". */
export function age(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return duration(seconds);
  return seconds < 1 ? "< 1 s" : duration(Math.floor(seconds));
}

/** A duration as one number and one unit, for the decades of an axis: 10 ms, 100 s. */
export const tick = (seconds: number): string =>
  seconds < 0.9995 ? `${Math.round(seconds * 1_000)} ms` : `${number(Math.round(seconds))} s`;

/** Below so many samples a percentile is one of them, and tells nothing of the others. */
const HANDFUL = 5;

/** A percentile of some samples; none of a few. */
export const percentile = (of: { count: number } | undefined, seconds?: number | null): string =>
  duration(of === undefined || of.count < HANDFUL ? null : seconds);

const UNITS: [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

function units(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [name, size] = UNITS[first] ?? ["s", 1];
  const next = UNITS[first + 1];
  const head = `${Math.floor(seconds / size)} ${name}`;
  if (next === undefined) return head;
  const rest = Math.floor((seconds % size) / next[1]);
  return rest === 0 ? head : `${head} ${rest} ${next[0]}`;
}

/** The server's clock is known to two seconds: what has just been may seem to lie so far ahead. */
const AHEAD = 2;

/** How long ago, or in how long; coarse enough not to flicker. */
export function relative(time: string | null | undefined, now: number): string {
  if (!time) return "–";
  const seconds = (Date.parse(time) - now) / 1000;
  if (seconds > -1 && seconds < AHEAD) return "now";
  const text = duration(Math.abs(seconds) < 10 ? Math.round(Math.abs(seconds)) : Math.abs(seconds));
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}

/** The exact time, with its zone's name. */
export function exact(time: string | null | undefined, zone: Zone): string {
  if (!time) return "–";
  const formatter = new Intl.DateTimeFormat("en-GB", {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
    timeZone: zone === "utc" ? "UTC" : undefined,
  });
  return formatter.format(new Date(time));
}

/** How the zone of the browser is called at a time, as exact times have it: CET, GMT+9. */
export const zoneName = (time: number): string =>
  new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(time)
    .find((part) => part.type === "timeZoneName")?.value ?? "";

/** A time of day for a chart's axis. */
export function clock(time: number | Date, zone: Zone, seconds = false): string {
  return new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: seconds ? "2-digit" : undefined,
    timeZone: zone === "utc" ? "UTC" : undefined,
  }).format(time);
}

export const percent = (share: number): string =>
  `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** The last part of a dotted path, which is what people call a task. */
export const lastName = (path: string): string => path.slice(path.lastIndexOf(".") + 1);

export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${number(n)} ${n === 1 ? one : many}`;
