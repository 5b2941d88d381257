/** What is pushed of workers: their condition, and how many jobs each holds. */

import { useRef, useState } from "react";
import { useTopic } from "../../live/LiveContext";
import type { WorkerChange } from "../../live/protocol";

export function useWorkers(onCrew: () => void): ReadonlyMap<string, WorkerChange> {
  const [told, setTold] = useState<ReadonlyMap<string, WorkerChange>>(new Map());
  // Two frames may come before React shows the first: the second builds on it all the same.
  const latest = useRef(told);
  const keep = (now: ReadonlyMap<string, WorkerChange>) => {
    latest.current = now;
    setTold(now);
  };
  useTopic("workers", {
    params: () => ({}),
    onChanges: (changes) => {
      const now = new Map(latest.current);
      let crewChanged = false;
      for (const change of changes as WorkerChange[]) {
        const before = now.get(change.id);
        if (change.gone) now.delete(change.id);
        else now.set(change.id, { ...before, ...change });
        if (before?.condition !== change.condition || change.gone) crewChanged = true;
      }
      keep(now);
      // Who came, died or drains is known over HTTP: names, hosts, reasons.
      if (crewChanged) onCrew();
    },
    onResync: onCrew,
  });
  return told;
}
