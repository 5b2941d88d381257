import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useRef } from "react";
import { type JobDetail, jobQuery } from "../../api/jobs";
import { config } from "../../app/config";
import { lastName } from "../../lib/format";
import { curl } from "../../lib/words";
import { useInterval, useTopic } from "../../live/LiveContext";
import type { JobChange } from "../../live/protocol";
import { Badge, Copy, Loaded } from "../../ui/parts";
import { JobActions } from "./JobActions";
import { JobFacts } from "./JobFacts";
import { ActionsTab, AttemptsTab, LogTab, PayloadTab, StepsTab } from "./JobTabs";
import { Progress } from "./Progress";
import { Timeline } from "./Timeline";

const route = getRouteApi("/jobs/$jobId");

const TABS = [
  ["timeline", "Timeline"],
  ["attempts", "Attempts"],
  ["steps", "Steps"],
  ["log", "Log"],
  ["payload", "Payload"],
  ["actions", "Done by operators"],
] as const;

export function JobPage() {
  const { jobId } = route.useParams();
  const query = useQuery({ ...jobQuery(jobId), refetchInterval: useInterval() });
  useJobPush(jobId, query.data);
  return <Loaded query={query}>{(job) => <Job job={job} />}</Loaded>;
}

/** Ask again for what has changed: the job itself, and what is shown of its history. */
function useJobPush(id: string, job: JobDetail | undefined): void {
  const queries = useQueryClient();
  const told = useRef<JobChange>({ id });
  const read = () => void queries.invalidateQueries({ queryKey: ["job", id] });
  useTopic(job === undefined ? null : "job", {
    params: () => ({ job: id }),
    onChanges: (changes) => {
      const [change] = changes as JobChange[];
      if (change === undefined) return;
      const before = told.current;
      told.current = { ...before, ...change };
      const isKnown = change.version === job?.version && before.log === change.log;
      const sameProgress = JSON.stringify(before.progress) === JSON.stringify(change.progress);
      if (!isKnown || !sameProgress || change.gone) read();
    },
    onResync: read,
  });
}

function Job({ job }: { job: JobDetail }) {
  const { tab = "timeline" } = route.useSearch();
  const navigate = route.useNavigate();
  const api = `${window.location.origin}${config.api}jobs/${job.id}/`;
  return (
    <article className="job">
      <p className="crumbs">
        <Link to="/jobs">Jobs</Link> /{" "}
        <Link to="/jobs" search={{ q: `task:${job.task} state:any` }}>
          {job.task}
        </Link>
      </p>
      <div className="page-head">
        <h1>
          {lastName(job.task)} <Badge name={job.state} />
        </h1>
        <div className="copies">
          <Copy text={job.id} label="Copy id" />
          <Copy text={window.location.href} label="Copy link" icon="link" />
          <Copy text={curl("GET", api)} label="Copy as curl" />
          {config.admin !== "" && (
            <a className="button small" href={`${config.admin}job/${job.id}/change/`}>
              In the admin
            </a>
          )}
        </div>
      </div>
      <p className="job-id">{job.id}</p>
      {job.reason !== "" && <p className="job-reason">{job.reason}</p>}
      {!job.task_known && (
        <p className="job-reason">
          The web server does not know this task. A worker that does runs it all the same.
        </p>
      )}
      <JobActions job={job} />
      {job.progress !== null && <Progress progress={job.progress} />}
      {job.error_class !== "" && (
        <div className="job-error">
          <b>{job.error_class}</b>: {job.error_message}{" "}
          <Link to="/jobs" search={{ q: `fingerprint:${job.error_fingerprint} state:any` }}>
            Jobs with the same error
          </Link>
        </div>
      )}
      <JobFacts job={job} />
      <nav className="state-tabs" aria-label="About this job">
        {TABS.map(([name, label]) => (
          <button
            type="button"
            key={name}
            aria-current={name === tab ? "page" : undefined}
            onClick={() =>
              navigate({ search: { tab: name === "timeline" ? undefined : name }, replace: true })
            }
          >
            {label}
          </button>
        ))}
      </nav>
      {tab === "timeline" && <Timeline job={job} />}
      {tab === "attempts" && <AttemptsTab id={job.id} />}
      {tab === "steps" && <StepsTab id={job.id} />}
      {tab === "log" && <LogTab id={job.id} />}
      {tab === "payload" && <PayloadTab job={job} />}
      {tab === "actions" && <ActionsTab id={job.id} />}
    </article>
  );
}
