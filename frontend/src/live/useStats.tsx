/** The stats that are pushed: one subscription for the whole page, merged and remembered. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { serverNow } from "../app/clock";
import { useLive, useTopic } from "./LiveContext";
import type { StatsChange } from "./protocol";
import { beaten, NO_PULSE, type Pulse } from "./pulse";

interface Told {
  stats: StatsChange | null;
  pulse: Pulse;
}

const Context = createContext<Told>({ stats: null, pulse: NO_PULSE });

/** Questions whose answers change when the rollups do. */
const ROLLED_UP = ["stats", "throughput", "latency", "errors", "workers"];

/** Ask anew what the rollups answer. A first answer that is still on its way would be kept: drop it. */
async function askAgain(queries: QueryClient): Promise<void> {
  const asked = {
    predicate: ({ queryKey }: { queryKey: readonly unknown[] }) =>
      ROLLED_UP.includes(String(queryKey[0])),
  };
  await queries.cancelQueries(asked);
  await queries.invalidateQueries(asked);
}

export function StatsProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const { mode } = useLive();
  const [told, setTold] = useState<Told>({ stats: null, pulse: NO_PULSE });
  const latest = useRef<StatsChange | null>(null);

  const hear = (stats: StatsChange) => {
    latest.current = stats;
    setTold(({ pulse }) => ({ stats, pulse: beaten(pulse, stats, serverNow()) }));
  };

  useTopic("stats", {
    params: () => ({}),
    onChanges: (changes) => {
      const change = changes as StatsChange;
      hear({ ...latest.current, ...change });
      // Also after the first event of a connection: an answer that was read before it may be older
      // than the rollup that it tells of, of which nothing more would be said.
      if (change.rolled_up_at !== undefined) void askAgain(queries);
    },
    // All members come with the next event, and with them the reading of what they tell of.
    onResync: () => {
      latest.current = null;
    },
  });

  // A quiet queue is told nothing new: its line goes on all the same.
  useEffect(() => {
    if (mode !== "live") return;
    const timer = window.setInterval(() => {
      if (latest.current !== null) hear(latest.current);
    }, 1_000);
    return () => window.clearInterval(timer);
  });

  // What was pushed is old as soon as nothing is pushed any more.
  useEffect(() => {
    if (mode === "polling" || mode === "offline") setTold(({ pulse }) => ({ stats: null, pulse }));
  }, [mode]);

  return <Context value={told}>{children}</Context>;
}

/** What was pushed last; null while nothing is. */
export const useStats = (): StatsChange | null => useContext(Context).stats;
export const usePulse = (): Pulse => useContext(Context).pulse;
