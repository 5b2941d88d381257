/** From its enqueue to its end: attempts, what lay between them, and what was committed. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { type Attempt, attemptsQuery, type JobDetail } from "../../api/jobs";
import { useNow } from "../../app/clock";
import { duration } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Badge, Earlier, Loaded, Time } from "../../ui/parts";
import { allOf } from "./JobTabs";

const seconds = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / 1_000;

export function Timeline({ job }: { job: JobDetail }) {
  const query = useInfiniteQuery({ ...attemptsQuery(job.id), refetchInterval: useInterval() });
  const now = useNow();
  return (
    <Loaded query={allOf(query)}>
      {(results) => (
        <ol className="timeline">
          <li>
            <Badge name="scheduled" label="enqueued" /> <Time at={job.enqueued_at} plain />
            {job.created_by !== "" && ` by ${job.created_by}`}
          </li>
          {query.hasNextPage && (
            <li>
              <Earlier query={query} what="attempts" />
            </li>
          )}
          {[...results].reverse().map((attempt) => (
            <AttemptEntry key={attempt.number} attempt={attempt} />
          ))}
          <li>
            <Badge name={job.state} label={job.state === "succeeded" ? "committed" : undefined} />{" "}
            {job.state === "running" && job.started_at !== null && (
              <>
                for {duration((now - Date.parse(job.started_at)) / 1_000)}; it stops at its time
                limit of {duration(job.timeout)}
              </>
            )}
            {(job.state === "scheduled" || job.state === "retrying") && (
              <>
                due <Time at={job.run_at} />
              </>
            )}
            {job.finished_at !== null && <Time at={job.finished_at} plain />}
            <Effects job={job} attempts={results} />
          </li>
        </ol>
      )}
    </Loaded>
  );
}

function AttemptEntry({ attempt }: { attempt: Attempt }) {
  const waited = attempt.due_at === null ? null : seconds(attempt.due_at, attempt.started_at);
  return (
    <li>
      <Badge name={attempt.outcome} /> attempt {attempt.number},{" "}
      <Time at={attempt.started_at} plain />
      <span className="quiet">
        {" "}
        on {attempt.worker_name || attempt.worker.slice(0, 8)}
        {waited !== null && `; waited ${duration(waited)}`}
        {`, ran ${duration(seconds(attempt.started_at, attempt.finished_at))}`}
        {attempt.charged && "; counts as a failure"}
      </span>
      {attempt.error_class !== "" && (
        <span className="timeline-error">
          <b>{attempt.error_class}</b>: {attempt.error_message}
        </span>
      )}
    </li>
  );
}

/** What of its writes there is, as the guarantee has it. */
function Effects({ job, attempts }: { job: JobDetail; attempts: readonly Attempt[] }) {
  const last = attempts.find((attempt) => attempt.outcome === "succeeded");
  const others = attempts.filter((attempt) => attempt.outcome !== "succeeded").length;
  if (job.state === "succeeded") {
    return (
      <p className="effects">
        Committed once{last !== undefined && `, by attempt ${last.number}`}.
        {others > 0 &&
          " What the attempts before it wrote in the job's own transaction was rolled back."}
      </p>
    );
  }
  if (job.state === "dead" || job.state === "cancelled") {
    return (
      <p className="effects">
        Not committed: what its attempts wrote in the job's own transaction was rolled back.
        Recorded steps are kept.
      </p>
    );
  }
  return null;
}
