/** What the status line says: pure, from what the connection, the requests and the viewer say. */

import type { Phase } from "./connection";

export const POLL_SECONDS = 10;

export type Mode = "live" | "connecting" | "polling" | "paused" | "offline" | "signed-out";

export interface Situation {
  phase: Phase;
  /** It is open, and the server tells nothing of some of what is shown. */
  refused: boolean;
  /** There is a WebSocket to connect to. */
  hasSocket: boolean;
  /** Tries that failed since it was last open. */
  failures: number;
  /** By the viewer. */
  paused: boolean;
  hidden: boolean;
  /** Since when requests get no answer. */
  lostAt: number | null;
}

export function modeOf(situation: Situation): Mode {
  if (situation.phase === "signed-out" || situation.phase === "forbidden") return "signed-out";
  if (situation.paused || situation.hidden) return "paused";
  if (situation.phase === "open") return situation.refused ? "polling" : "live";
  if (situation.lostAt !== null) return "offline";
  if (situation.hasSocket && situation.failures === 0 && situation.phase !== "lagging") {
    return "connecting";
  }
  return "polling";
}

/** How often queries ask by themselves, in ms; false: not at all. */
export function intervalOf(mode: Mode): number | false {
  if (mode === "polling") return POLL_SECONDS * 1_000;
  return mode === "offline" ? 3_000 : false;
}
