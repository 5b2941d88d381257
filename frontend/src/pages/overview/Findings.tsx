/** What is wrong now, the worst first, each with the way out. */

import { useQuery } from "@tanstack/react-query";
import { findingsQuery } from "../../api/page";
import { useLive } from "../../live/LiveContext";
import { Badge, Loaded, Panel } from "../../ui/parts";

/** Some of it nobody is told of by a push: locks, drift, the database's own health. */
const LOOK_MS = 10_000;

export function Findings() {
  const { mode } = useLive();
  const query = useQuery({
    ...findingsQuery,
    refetchInterval: mode === "paused" ? false : LOOK_MS,
  });
  return (
    <Panel title="What is wrong now">
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <p className="all-well">
              <Badge name="succeeded" label="Nothing" /> Jobs are taken, nothing is late, and no
              queue is paused.
            </p>
          ) : (
            <ul className="findings">
              {results.map((finding) => (
                <li key={`${finding.code} ${finding.subject}`} className={finding.severity}>
                  <Badge name={finding.severity} />
                  <span>
                    {finding.sentence} <span className="way-out">{finding.way_out}</span>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
