/** What can be done with a job, in words; and as a command for a terminal. */

import { number, plural } from "./format";

export type JobAction =
  | "cancel"
  | "requeue"
  | "discard"
  | "run_now"
  | "reprioritize"
  | "move"
  | "reschedule";

export const ACTION_WORDS: Record<JobAction, string> = {
  requeue: "Requeue",
  run_now: "Run now",
  cancel: "Cancel",
  discard: "Discard",
  reprioritize: "Priority …",
  move: "Move to a queue …",
  reschedule: "Reschedule …",
};

export const PAST: Record<string, string> = {
  requeue: "requeued",
  run_now: "due now",
  cancel: "cancelled",
  discard: "discarded",
  reprioritize: "given another priority",
  move: "moved",
  reschedule: "rescheduled",
};

/** States and outcomes as they are read. What is lost is the attempt, never its job. */
export const wordOf = (name: string): string =>
  name === "lost" ? "interrupted" : name.replaceAll("_", " ");

/** A user by name alone: the server adds the number of the account, "kim#7". */
export const personOf = (user: string): string => user.replace(/#\d+$/, "");

/** Whether a worker that is gone ended as it was told to, as at every deployment. */
export const hasStopped = (worker: { reason: string }): boolean => worker.reason === "stopped";

/** How busy a worker is. It claims some jobs ahead, which are held and wait for a slot. */
export function slotsOf(held: number, slots: number): string {
  const busy = `${number(Math.min(held, slots))} of ${plural(slots, "slot")}`;
  return held > slots ? `${busy}, ${number(held - slots)} claimed` : busy;
}

/** Those that end something ask first. */
export const DESTRUCTIVE: ReadonlySet<string> = new Set(["cancel", "discard"]);

/** A request as a line for a shell; the token is the reader's own. */
export function curl(method: string, url: string, body?: unknown): string {
  const parts = ["curl"];
  if (method !== "GET") parts.push("-X", method);
  parts.push("-H", '"Authorization: Token $TOKEN"');
  if (body !== undefined) {
    parts.push("-H", '"Content-Type: application/json"');
    if (method === "POST") parts.push("-H", '"Idempotency-Key: $(uuidgen)"');
    parts.push("-d", `'${JSON.stringify(body).replaceAll("'", "'\\''")}'`);
  }
  parts.push(`'${url.replaceAll("'", "%27")}'`);
  return parts.join(" ");
}
