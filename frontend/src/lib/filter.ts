/**
 * The filter language, as far as the field needs it: where tokens are, what may be suggested at the
 * caret, and how a token is added, changed or taken out. The server is the judge of what is valid;
 * its errors name a place in the text.
 */

export interface Token {
  /** As it is written. */
  text: string;
  start: number;
  end: number;
  negated: boolean;
  /** "" for free text. */
  key: string;
  operator: string;
  value: string;
}

export const KEYS: Record<string, string> = {
  state: "state, or live, waiting, finished, any",
  queue: "queue",
  task: "dotted path of the task; * at an end",
  tag: "one of the job's tags",
  id: "id of the job",
  "args.": "an argument by its name or position",
  error: "class of the last error",
  message: "text of the last error",
  fingerprint: "errors that are alike",
  reason: "why it is blocked, dead or cancelled",
  worker: "worker that runs it",
  schedule: "schedule that it comes from",
  backend: "alias in TASKS",
  created_by: "who made it",
  copied_from: "job that it was copied from",
  "priority>": "priority",
  "attempts>": "attempts that have ended",
  "failures>": "attempts that count as failures",
  "created>": "when it was enqueued, such as -2h",
  "run_at<": "when it is due, such as +1h",
  "finished>": "when it ended, such as -2h",
};

export const STATES = [
  "scheduled",
  "ready",
  "blocked",
  "running",
  "retrying",
  "succeeded",
  "dead",
  "cancelled",
] as const;
export type State = (typeof STATES)[number];

const STATE_WORDS = [...STATES, "live", "waiting", "finished", "any"];
const TERM = /^([a-z_]+(?:\.[^\s:<>=]+)*)(:|>=|<=|>|<)(.*)$/s;

/** Cut a filter into its tokens; quotes keep spaces together. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at] ?? "")) {
      at += 1;
      continue;
    }
    const end = endOfToken(text, at);
    found.push(tokenOf(text.slice(at, end), at));
    at = end;
  }
  return found;
}

function endOfToken(text: string, start: number): number {
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at] ?? "";
    if (quoted && sign === "\\") at += 1;
    else if (sign === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(sign)) return at;
  }
  return text.length;
}

function tokenOf(written: string, start: number): Token {
  const negated = written.startsWith("-") && written.length > 1;
  const bare = negated ? written.slice(1) : written;
  const match = TERM.exec(bare);
  const [, key = "", operator = "", value = bare] = match ?? [];
  return {
    text: written,
    start,
    end: start + written.length,
    negated,
    key,
    operator,
    value: unquoted(value),
  };
}

function unquoted(value: string): string {
  if (!value.startsWith('"')) return value;
  return value.replace(/^"|"$/g, "").replace(/\\(["\\])/g, "$1");
}

/** Write a value so that it is read as one, whatever is in it. */
export function quoted(value: string): string {
  if (/^[^\s",:<>=\\*-][^\s",:<>=\\*]*$/.test(value)) return value;
  return `"${value.replace(/(["\\])/g, "\\$1")}"`;
}

/** Return the filter with `key:value` in the place of what it said about `key`; null takes it out. */
export function withTerm(text: string, key: string, value: string | null): string {
  const kept = tokens(text).filter((token) => token.key !== key || token.negated);
  const added = value === null ? [] : [`${key}:${quoted(value)}`];
  return [...added, ...kept.map((token) => token.text)].join(" ");
}

/** Return the value of the first plain `key:` term. */
export function termOf(text: string, key: string): string | null {
  const found = tokens(text).find((token) => token.key === key && !token.negated);
  return found?.value ?? null;
}

export interface Suggestion {
  /** What stands in the place of the token. */
  insert: string;
  hint: string;
}

/** Values that may stand behind a key, as the page knows them (queues, tasks, …). */
export type Known = Partial<Record<string, readonly string[]>>;

export function tokenAt(text: string, caret: number): Token | null {
  return tokens(text).find((token) => token.start <= caret && caret <= token.end) ?? null;
}

/** What could be meant by the token at the caret; nothing once it is complete. */
export function suggestions(text: string, caret: number, known: Known, most = 8): Suggestion[] {
  const token = tokenAt(text, caret);
  const written = token === null ? "" : text.slice(token.start, caret);
  const sign = written.startsWith("-") ? "-" : "";
  const bare = written.slice(sign.length);
  const match = TERM.exec(bare);
  if (match?.[1] !== undefined) {
    const [, key, operator, value = ""] = match;
    return valuesFor(key, operator ?? ":", value, known, sign).slice(0, most);
  }
  return Object.entries(KEYS)
    .filter(([key]) => key.startsWith(bare.toLowerCase()))
    .map(([key, hint]) => ({ insert: `${sign}${/[.<>]$/.test(key) ? key : `${key}:`}`, hint }))
    .slice(0, most);
}

function valuesFor(
  key: string,
  operator: string,
  value: string,
  known: Known,
  sign: string,
): Suggestion[] {
  if (operator !== ":") return [];
  const listed = key === "state" ? STATE_WORDS : (known[key] ?? []);
  const done = value.slice(0, value.lastIndexOf(",") + 1);
  const part = value.slice(done.length).replace(/^"/, "").toLowerCase();
  return listed
    .filter((one) => one.toLowerCase().includes(part) && one.toLowerCase() !== part)
    .map((one) => ({ insert: `${sign}${key}:${done}${quoted(one)}`, hint: "" }));
}

/** Put a suggestion in the place of the token at the caret; return the text and the new caret. */
export function accept(text: string, caret: number, suggestion: Suggestion): [string, number] {
  const token = tokenAt(text, caret);
  const [start, end] = token === null ? [caret, caret] : [token.start, token.end];
  const isOpen = /[:.<>]$/.test(suggestion.insert);
  const rest = text.slice(end);
  const gap = isOpen || rest.startsWith(" ") ? "" : " ";
  const head = text.slice(0, start) + suggestion.insert + gap;
  return [head + rest, head.length + (gap === "" && !isOpen ? 1 : 0)];
}

/** Say in words which jobs a filter means; what it cannot say it quotes. */
export function inWords(text: string): string {
  const said = tokens(text).map((token) => {
    const not = token.negated ? "not " : "";
    if (token.key === "") return `${not}with “${token.value}”`;
    if (token.key === "state") return `${not}${token.value.replaceAll(",", " or ")}`;
    const is = token.operator === ":" ? " " : ` ${token.operator} `;
    return `${not}${token.key}${is}${token.value.replaceAll(",", " or ")}`;
  });
  return said.length === 0 ? "live or dead" : said.join(", ");
}
