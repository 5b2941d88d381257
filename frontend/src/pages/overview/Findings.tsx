/** What is wrong now, the worst first, each with the way out. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Finding, findingsQuery } from "../../api/page";
import { quoted } from "../../lib/filter";
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
                  <div className="finding">
                    <span>
                      {finding.sentence} <WayOut text={finding.way_out} />
                    </span>
                    <Where finding={finding} />
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** What to do; a command in it looks like one. */
function WayOut({ text }: { text: string }) {
  const [before = "", command, after = ""] = text.split(/(manage\.py [\w -]*\w)/);
  return (
    <span className="way-out">
      {before}
      {command !== undefined && <code>{command}</code>}
      {after}
    </span>
  );
}

/** Where on this page it can be looked at, or put right. */
function Where({ finding }: { finding: Finding }) {
  switch (finding.code) {
    case "dead_letters":
      return <Link to="/errors">Errors</Link>;
    case "queue_paused":
    case "queue_unserved":
      return <Link to="/queues">Queues</Link>;
    case "unknown_tasks":
      return (
        <Link to="/jobs" search={{ q: "state:blocked" }}>
          Show them
        </Link>
      );
    case "task_failing":
      return (
        <Link to="/jobs" search={{ q: `task:${quoted(finding.subject)} state:dead,retrying` }}>
          Show them
        </Link>
      );
    case "schedules_late":
    case "schedule_failing":
      return <Link to="/schedules">Schedules</Link>;
    case "no_worker":
    case "unreaped":
    case "clock_drift":
    case "version_drift":
      return <Link to="/workers">Workers</Link>;
    default:
      return null;
  }
}
