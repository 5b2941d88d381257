/** States as tabs, with counts of those that are live or dead; what has ended is never counted. */

import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "../../api/resources";
import { termOf, tokens, withTerm } from "../../lib/filter";
import { count } from "../../lib/format";
import { atLeastShown, type Row } from "../../live/rows";
import { useStats } from "../../live/useStats";

const TABS: [string | null, string][] = [
  [null, "Live and dead"],
  ["ready", "Ready"],
  ["running", "Running"],
  ["retrying", "Retrying"],
  ["scheduled", "Scheduled"],
  ["blocked", "Blocked"],
  ["dead", "Dead"],
  ["succeeded", "Succeeded"],
  ["cancelled", "Cancelled"],
  ["any", "All"],
];

interface Properties {
  q: string;
  rows: readonly Row[];
  onChange: (q: string) => void;
}

export function StateTabs({ q, rows, onChange }: Properties) {
  const live = useStats();
  const stats = useQuery({ ...statsQuery(3_600), staleTime: 5_000 });
  // Rows are pushed more often than counts.
  const counts = atLeastShown(live?.counts ?? stats.data?.counts ?? {}, rows);
  const current = termOf(q, "state");
  const others = tokens(q).some((token) => token.key !== "state");
  return (
    <nav className="state-tabs" aria-label="States">
      {TABS.map(([state, label]) => (
        <button
          key={label}
          type="button"
          aria-current={current === state ? "page" : undefined}
          onClick={() => onChange(withTerm(q, "state", state))}
        >
          {label}
          {state !== null && counts[state] !== undefined && (
            <span
              className="tab-count"
              title={others ? "whatever else the filter says" : undefined}
            >
              {count(counts[state])}
            </span>
          )}
        </button>
      ))}
    </nav>
  );
}
