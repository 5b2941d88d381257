import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { JobDetail } from "../../api/jobs";
import { quoted } from "../../lib/filter";
import { duration, number } from "../../lib/format";
import { personOf } from "../../lib/words";
import { Time } from "../../ui/parts";

export function JobFacts({ job }: { job: JobDetail }) {
  return (
    <dl className="facts">
      <Fact name="Queue">
        <Link to="/jobs" search={{ q: `queue:${quoted(job.queue_name)}` }}>
          {job.queue_name}
        </Link>
      </Fact>
      <Fact name="Priority">{job.priority}</Fact>
      <Fact name="Attempts">
        {number(job.attempts)}, {job.failures === 0 ? "none" : number(job.failures)} failed
        {job.max_attempts !== null && ` (at most ${number(job.max_attempts)} may)`}
      </Fact>
      <Fact name="Enqueued">
        <Time at={job.enqueued_at} plain />
      </Fact>
      <Fact name="Due">
        <Time at={job.run_at} plain />
      </Fact>
      {job.started_at && (
        <Fact name={job.attempts > (job.finished_at === null ? 0 : 1) ? "Last started" : "Started"}>
          <Time at={job.started_at} plain={job.finished_at !== null} />
        </Fact>
      )}
      {job.finished_at && (
        <Fact name="Ended">
          <Time at={job.finished_at} plain />
        </Fact>
      )}
      {job.deadline && (
        <Fact name="Deadline">
          <Time at={job.deadline} />
        </Fact>
      )}
      {job.expires_at && (
        <Fact name="Expires">
          <Time at={job.expires_at} plain />
        </Fact>
      )}
      <Fact name="Time limit">{duration(job.timeout)}</Fact>
      {job.worker && (
        <Fact name="Worker">
          <Link to="/jobs" search={{ q: `worker:${job.worker}` }}>
            {job.worker.slice(0, 13)}…
          </Link>
        </Fact>
      )}
      {job.suspicions > 0 && (
        <Fact name="Workers that died running it">
          {job.suspicions}
          {job.alone && "; it runs alone now"}
        </Fact>
      )}
      {job.schedule !== "" && (
        <Fact name="Schedule">
          <Link to="/jobs" search={{ q: `schedule:${quoted(job.schedule)} state:any` }}>
            {job.schedule}
          </Link>{" "}
          <Time at={job.tick} plain />
        </Fact>
      )}
      {job.unique_key !== null && <Fact name="Unique key">{job.unique_key}</Fact>}
      {job.limit_key !== null && <Fact name="Limit">{job.limit_key}</Fact>}
      {job.created_by !== "" && (
        <Fact name="Made by">
          <span title={job.created_by}>{personOf(job.created_by)}</span>
        </Fact>
      )}
      {job.copied_from !== null && (
        <Fact name="Copied from">
          <Link to="/jobs/$jobId" params={{ jobId: job.copied_from }}>
            {job.copied_from.slice(0, 13)}…
          </Link>
        </Fact>
      )}
      {job.tags.length > 0 && (
        <Fact name="Tags">
          {job.tags.map((tag) => (
            <Link
              className="tag"
              key={tag}
              to="/jobs"
              search={{ q: `tag:${quoted(tag)} state:any` }}
            >
              {tag}
            </Link>
          ))}
        </Fact>
      )}
      {job.cancel_requested !== null && (
        <Fact name="Asked to stop">
          <Time at={job.cancel_requested.requested_at} />: {job.cancel_requested.reason || "–"}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
