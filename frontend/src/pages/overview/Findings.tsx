/** What is wrong now, the worst first, each with the way out. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Finding, findingsQuery } from "../../api/page";
import { statsQuery, workersQuery } from "../../api/resources";
import { serverTime, useNow } from "../../app/clock";
import { config } from "../../app/config";
import { useZone } from "../../app/preferences";
import { deathsInWords, diedLately, LATELY_SECONDS, replacements } from "../../lib/crew";
import { quoted } from "../../lib/filter";
import { clock, count, duration, plural } from "../../lib/format";
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
    <span className="quiet">checked at {clock(serverTime(query.dataUpdatedAt), zone, true)}</span>
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

/** No finding; a few dead letters and workers that came back are none, and are told of all the same. */
function AllWell() {
  const told = useStats();
  const stats = useQuery(statsQuery(3_600));
  const dead = (told?.counts ?? stats.data?.counts)?.dead;
  const crew = useQuery(workersQuery);
  const now = useNow();
  const died = diedLately(crew.data?.dead ?? [], now);
  const isEmpty = !dead?.value && died.length === 0;
  return (
    <p className="all-well">
      <Badge
        name={died.length === 0 ? "succeeded" : "info"}
        label={isEmpty ? "Nothing" : "Nothing urgent"}
      />{" "}
      Jobs are taken, nothing is late, and no queue is paused.
      {died.length > 0 && (
        <>
          {" "}
          <Link to="/workers">
            {plural(died.length, "worker")} died in the last {duration(LATELY_SECONDS)}
          </Link>
          {deathsInWords(died, replacements(crew.data?.results ?? [], crew.data?.dead ?? []))}
        </>
      )}
      {!!dead?.value && (
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
      return finding.subject === "" ? (
        <Link to="/errors">Look at their errors</Link>
      ) : (
        <Link to="/errors" search={{ group: finding.subject }}>
          Look at this error
        </Link>
      );
    case "bulk_failed":
      // A page of its own is only in the admin; here it stands above the jobs, to be resumed.
      return config.admin === "" ? (
        <Link to="/jobs">Look at what is under way</Link>
      ) : (
        <a href={`${config.admin}bulkoperation/${encodeURIComponent(finding.subject)}/change/`}>
          Open this operation
        </a>
      );
    case "overdue":
      return (
        <Link to="/jobs" search={{ q: "state:running" }}>
          Look at running jobs
        </Link>
      );
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
    case "unpromoted":
    case "clock_drift":
    case "version_drift":
      return <Link to="/workers">Open the workers</Link>;
    default:
      return null;
  }
}
