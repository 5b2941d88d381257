/** Search parameters as plain text: `?q=state:dead`, no JSON, so that people can write them. */

export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const kept = Object.entries(search).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== "",
  );
  if (kept.length === 0) return "";
  const written = new URLSearchParams(kept).toString();
  // What a query string may hold as it is, stays readable.
  return `?${written.replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%22", '"')}`;
}

export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

export const within = <T extends string>(value: unknown, all: readonly T[]): T | undefined =>
  all.find((one) => one === value);
