/** From its enqueue to its end: attempts, what lay between them, and what was committed. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { type Attempt, attemptsQuery, type JobDetail } from "../../api/jobs";
import { useNow } from "../../app/clock";
import { capital, duration } from "../../lib/format";
import { personOf } from "../../lib/words";
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
            {job.created_by !== "" && ` by ${personOf(job.created_by)}`}
          </li>
          {query.hasNextPage && (
            <li>
              <Earlier query={query} what="attempts" />
            </li>
          )}
          {[...results].reverse().map((attempt) => (
            <AttemptEntry
              key={attempt.number}
              attempt={attempt}
              before={results.find((one) => one.number === attempt.number - 1)}
            />
          ))}
          <li>
            <Badge
              name={job.state}
              label={job.state === "succeeded" ? completed(job) : undefined}
            />{" "}
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

function AttemptEntry({ attempt, before }: { attempt: Attempt; before: Attempt | undefined }) {
  return (
    <li>
      <Badge name={attempt.outcome} /> attempt {attempt.number},{" "}
      <Time at={attempt.started_at} plain />
      <span className="quiet">
        {" "}
        on {attempt.worker_name || attempt.worker.slice(0, 8)}
        {attempt.worker_pid !== null && ` pid ${attempt.worker_pid}`}
        {`; ${waitOf(attempt, before)}`}
        {`, ran ${duration(seconds(attempt.started_at, attempt.finished_at))}`}
        {attempt.charged && "; counts as a failure"}
      </span>
      {attempt.error_class !== "" && (
        <span className={attempt.outcome === "lost" ? "timeline-lost" : "timeline-error"}>
          <b>{attempt.error_class}</b>: {attempt.error_message}
        </span>
      )}
    </li>
  );
}

/** How long an attempt waited. A lost one leaves its job due as it was: its own time is no wait. It
 * ended when somebody saw that its worker was gone. */
function waitOf(attempt: Attempt, before: Attempt | undefined): string {
  if (before?.outcome === "lost") {
    return `run again ${duration(seconds(before.finished_at, attempt.started_at))} after that was noticed`;
  }
  const since = attempt.due_at ?? attempt.started_at;
  return `waited ${duration(seconds(since, attempt.started_at))}`;
}

/** What a job is that has succeeded: of one that is not atomic more than its row may have been done. */
const completed = (job: JobDetail): string => (job.atomic === false ? "completed" : "committed");

/** What of its writes there is, as the guarantee has it. */
function Effects({ job, attempts }: { job: JobDetail; attempts: readonly Attempt[] }) {
  const last = attempts.find((attempt) => attempt.outcome === "succeeded");
  const others = attempts.filter((attempt) => attempt.outcome !== "succeeded").length;
  if (job.state === "succeeded") {
    return (
      <p className="effects">
        {capital(completed(job))} once
        {last !== undefined && `, by attempt ${last.number}`}.{others > 0 && ` ${earlier(job)}`}
      </p>
    );
  }
  if (job.state === "dead" || job.state === "cancelled") {
    return <p className="effects">Not completed. {earlier(job)}</p>;
  }
  return null;
}

/** What there is of attempts that did not complete the job. */
function earlier(job: JobDetail): string {
  if (job.atomic === false) {
    return "The task is not atomic: what other attempts did is not undone. Recorded steps are kept.";
  }
  const transaction = job.atomic ? "" : " in the job's own transaction";
  return `What other attempts wrote${transaction} was rolled back; a recorded step is kept, and not repeated.`;
}
