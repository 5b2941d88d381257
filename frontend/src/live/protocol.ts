/**
 * Frames of the WebSocket, as docs/reference/websocket.md has them. Changes are thin: what a job
 * looks like now is asked for over HTTP. Types and members that are not known here are ignored.
 */

import type { Count } from "../lib/format";

export type Topic = "stats" | "jobs" | "job" | "queues" | "workers";
export type Params = Record<string, unknown>;

/** A job: that it is in another state or version than was known. */
export interface Change {
  id: string;
  state?: string;
  version?: number;
  new?: boolean;
  gone?: boolean;
}

export interface StatsChange {
  counts?: Record<string, Count>;
  oldest_ready_at?: string | null;
  workers?: Record<string, number>;
  paused_queues?: number;
  attempts?: number;
  rolled_up_at?: string | null;
  as_of?: string;
}

export interface QueueChange {
  name: string;
  ready?: Count;
  oldest_ready_at?: string | null;
  paused?: boolean;
  paused_by?: string;
  paused_reason?: string;
  gone?: boolean;
}

export interface WorkerChange {
  id: string;
  condition?: string;
  running?: number;
  gone?: boolean;
}

export interface JobChange extends Change {
  attempts?: number;
  progress?: { done: number; total: number | null } | null;
  log?: number | null;
}

export interface Problem {
  code: string;
  title?: string;
  detail: string;
  permission?: string;
}

export type ServerFrame =
  | { type: "hello"; version: number; time: string; user: string; permissions: string[] }
  | { type: "event"; id: string; seq: number; changes: unknown }
  | { type: "resync"; id: string; seq: number; reason: string }
  | { type: "error"; id: string | null; problem: Problem }
  | { type: "pong"; time: string; lag_seconds: number | null };

export function decode(data: unknown): ServerFrame | null {
  if (typeof data !== "string") return null;
  try {
    const frame: unknown = JSON.parse(data);
    return isFrame(frame) ? frame : null;
  } catch {
    return null;
  }
}

function isFrame(frame: unknown): frame is ServerFrame {
  return typeof frame === "object" && frame !== null && "type" in frame;
}

/** Close codes after which coming back would not help until somebody signs in or is allowed. */
export const SIGNED_OUT = 4401;
export const FORBIDDEN = 4403;
/** Too many connections, or too many messages: polling is what the server asks for. */
export const TOO_MANY = 4429;

/** A server that has not asked its database for longer does not know what it would call live. */
export const MAX_LAG_SECONDS = 10;
