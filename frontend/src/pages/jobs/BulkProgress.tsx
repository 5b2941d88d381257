/** How far a bulk operation is, until it has ended. */

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { bulkQuery } from "../../api/page";
import { number } from "../../lib/format";

const ENDED = new Set(["finished", "stopped", "failed"]);

interface Properties {
  id: string;
  onClose: () => void;
  onDone: () => void;
}

export function BulkProgress({ id, onClose, onDone }: Properties) {
  const { data } = useQuery({
    ...bulkQuery(id),
    refetchInterval: ({ state }) => (ENDED.has(state.data?.state ?? "") ? false : 1_000),
  });
  const hasEnded = ENDED.has(data?.state ?? "");
  // biome-ignore lint/correctness/useExhaustiveDependencies: told once, when it ends
  useEffect(() => {
    if (hasEnded) onDone();
  }, [hasEnded]);
  if (data === undefined) return null;
  const counts = Object.entries(data.counts).map(([what, n]) => `${number(n)} ${what}`);
  return (
    <div className="bulk-progress" role="status">
      <span>
        Operation {data.id}, {data.verb.replace("_", " ")}: {data.state}
        {counts.length > 0 && `: ${counts.join(", ")}`}
        {data.error !== "" && `. ${data.error}`}
      </span>
      <progress max={Math.max(1, data.total)} value={Math.min(data.seen, data.total)} />
      <button type="button" className="small" onClick={onClose}>
        Dismiss
      </button>
    </div>
  );
}
