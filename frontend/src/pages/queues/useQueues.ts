/** What is pushed of queues, laid over what was read. */

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Queue } from "../../api/resources";
import { useNow } from "../../app/clock";
import { useLive, useTopic } from "../../live/LiveContext";
import type { QueueChange } from "../../live/protocol";

export interface QueueNow {
  ready: Queue["ready"];
  oldest: number | null;
  paused: boolean;
  paused_by: string;
  paused_reason: string;
}

export function useQueues(): (queue: Queue) => QueueNow {
  const queries = useQueryClient();
  const { mode } = useLive();
  const now = useNow();
  const [told, setTold] = useState<ReadonlyMap<string, QueueChange>>(new Map());
  const read = () => void queries.invalidateQueries({ queryKey: ["queues"] });
  // Two frames may come before React shows the first: the second builds on it all the same.
  const latest = useRef(told);
  useTopic("queues", {
    params: () => ({}),
    onChanges: (changes) => {
      const next = new Map(latest.current);
      let isNew = false;
      for (const change of changes as QueueChange[]) {
        const before = next.get(change.name);
        if (change.gone) next.delete(change.name);
        else next.set(change.name, { ...before, ...change });
        if (before === undefined || before.paused !== change.paused) isNew = true;
      }
      latest.current = next;
      setTold(next);
      if (isNew) read();
    },
    onResync: read,
  });
  return (queue) => {
    const pushed = mode === "live" ? told.get(queue.name) : undefined;
    if (pushed === undefined) return { ...queue, oldest: queue.oldest_ready_seconds };
    const since = pushed.oldest_ready_at;
    return {
      ready: pushed.ready ?? queue.ready,
      oldest: since ? Math.max(0, (now - Date.parse(since)) / 1_000) : null,
      paused: pushed.paused ?? queue.paused,
      paused_by: pushed.paused_by ?? queue.paused_by,
      paused_reason: pushed.paused_reason ?? queue.paused_reason,
    };
  };
}
