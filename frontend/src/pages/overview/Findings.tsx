/** What is wrong now, the worst first, each with the way out. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Finding, findingsQuery } from "../../api/page";
import { statsQuery } from "../../api/resources";
import { serverTime } from "../../app/clock";
import { useZone } from "../../app/preferences";
import { quoted } from "../../lib/filter";
import { clock, count } from "../../lib/format";
import { useLive } from "../../live/LiveContext";
import { useStats } from "../../live/useStats";
import { Badge, Loaded, Panel } from "../../ui/parts";

/** Some of it nobody is told of by a push: locks, drift, the database's own health. */
const LOOK_MS = 10_000;
/** A command is so long, in what the server says of the way out. */
const COMMAND = /(manage\.py .+?)(?= or |\. |\.?$|[;(]| \()/;

export function Findings() {
  const { mode } = useLive();
  const zone = useZone();
  const query = useQuery({
    ...findingsQuery,
    refetchInterval: mode === "paused" ? false : LOOK_MS,
  });
  // The figures in it are as old as the look, those below it are pushed: they may differ.
  const looked = query.data && (
    <span className="quiet">looked at {clock(serverTime(query.dataUpdatedAt), zone, true)}</span>
  );
  return (
    <Panel title="What is wrong now" tools={looked}>
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <AllWell />
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

/** No finding; a few dead letters are none, and are told of all the same. */
function AllWell() {
  const told = useStats();
  const stats = useQuery(statsQuery(3_600));
  const dead = (told?.counts ?? stats.data?.counts)?.dead;
  const isEmpty = !dead?.value;
  return (
    <p className="all-well">
      <Badge name="succeeded" label={isEmpty ? "Nothing" : "Nothing urgent"} /> Jobs are taken,
      nothing is late, and no queue is paused.
      {!isEmpty && (
        <>
          {" "}
          <Link to="/errors">
            {count(dead)} {dead.value === 1 ? "job is" : "jobs are"} dead
          </Link>
          .
        </>
      )}
    </p>
  );
}

/** What to do; commands in it look like some. */
function WayOut({ text }: { text: string }) {
  const parts = text.split(COMMAND);
  return (
    <span className="way-out">
      {parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
    </span>
  );
}

/** Where on this page it can be looked at, or put right. */
function Where({ finding }: { finding: Finding }) {
  switch (finding.code) {
    case "dead_letters":
      return <Link to="/errors">Look at their errors</Link>;
    case "queue_paused":
    case "queue_unserved":
      return <Link to="/queues">Open the queues</Link>;
    case "unknown_tasks":
      return (
        <Link to="/jobs" search={{ q: "state:blocked" }}>
          Look at these jobs
        </Link>
      );
    case "task_failing":
      return (
        <Link to="/jobs" search={{ q: `task:${quoted(finding.subject)} state:dead,retrying` }}>
          Look at these jobs
        </Link>
      );
    case "schedules_late":
    case "schedule_failing":
      return <Link to="/schedules">Open the schedules</Link>;
    case "no_worker":
    case "unreaped":
    case "clock_drift":
    case "version_drift":
      return <Link to="/workers">Open the workers</Link>;
    default:
      return null;
  }
}
