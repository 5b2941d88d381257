/** What is kept of a job: attempts with tracebacks, steps, log, payload, and what operators did. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { actionsQuery, attemptsQuery, type JobDetail, logQuery, stepsQuery } from "../../api/jobs";
import { config } from "../../app/config";
import { duration } from "../../lib/format";
import { curl } from "../../lib/words";
import { useInterval } from "../../live/LiveContext";
import { Badge, Copy, Earlier, Empty, Loaded, Time } from "../../ui/parts";

const HIDDEN = "Hidden: it needs the permission jobqueue.view_job_payload.";

/** The pages that were loaded as one. */
export function allOf<R>(query: {
  data: { pages: readonly { results: readonly R[] }[] } | undefined;
  error: unknown;
  isPending: boolean;
}) {
  const { data, error, isPending } = query;
  return { data: data?.pages.flatMap((page) => page.results), error, isPending };
}

export function AttemptsTab({ id }: { id: string }) {
  const query = useInfiniteQuery({ ...attemptsQuery(id), refetchInterval: useInterval() });
  return (
    <Loaded query={allOf(query)}>
      {(results) =>
        results.length === 0 ? (
          <Empty title="No attempt has ended yet">
            <p>
              An attempt is written down when it ends, with its worker, its times and its error.
            </p>
          </Empty>
        ) : (
          <div className="attempts">
            {results.map((attempt) => (
              <section key={attempt.number} className="attempt">
                <h2>
                  Attempt {attempt.number} <Badge name={attempt.outcome} />
                </h2>
                <p className="quiet">
                  <Time at={attempt.started_at} plain />, ran{" "}
                  {duration(
                    (Date.parse(attempt.finished_at) - Date.parse(attempt.started_at)) / 1_000,
                  )}
                  , {attempt.charged ? "counts as a failure" : "counts as no failure"}, on{" "}
                  {attempt.worker_name || attempt.worker}
                  {attempt.worker_pid !== null && ` pid ${attempt.worker_pid}`}
                </p>
                {attempt.error_class !== "" && (
                  <p>
                    <b>{attempt.error_class}</b>: {attempt.error_message}
                  </p>
                )}
                {attempt.payload_hidden && attempt.error_class !== "" && (
                  <p className="quiet">{HIDDEN}</p>
                )}
                {attempt.traceback && <Code text={attempt.traceback} label="Traceback" />}
              </section>
            ))}
            <Earlier query={query} what="attempts" />
          </div>
        )
      }
    </Loaded>
  );
}

export function StepsTab({ id }: { id: string }) {
  const query = useInfiniteQuery({ ...stepsQuery(id), refetchInterval: useInterval() });
  return (
    <Loaded query={allOf(query)}>
      {(results) =>
        results.length === 0 ? (
          <Empty title="No step is recorded">
            <p>
              What <code>context.step("charge", …)</code> returns is kept, and not run again by a
              later attempt.
            </p>
          </Empty>
        ) : (
          <div className="table-wrap">
            <table className="cards">
              <thead>
                <tr>
                  <th>Step</th>
                  <th>Recorded</th>
                  <th>Result</th>
                </tr>
              </thead>
              <tbody>
                {results.map((step) => (
                  <tr key={step.name}>
                    <td data-label="Step">{step.name}</td>
                    <td data-label="Recorded">
                      <Time at={step.recorded_at} plain />
                    </td>
                    <td data-label="Result">
                      {step.payload_hidden ? (
                        <span className="quiet">{HIDDEN}</span>
                      ) : (
                        <code className="value">{JSON.stringify(step.result)}</code>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            <Earlier query={query} what="steps" />
          </div>
        )
      }
    </Loaded>
  );
}

export function LogTab({ id }: { id: string }) {
  const query = useInfiniteQuery({ ...logQuery(id), refetchInterval: useInterval() });
  return (
    <Loaded query={allOf(query)}>
      {(results) =>
        results.length === 0 ? (
          <Empty title="The job has logged nothing">
            <p>
              What a task says through <code>context.log</code> stands here, also of attempts that
              were rolled back.
            </p>
          </Empty>
        ) : (
          <>
            <Earlier query={query} what="lines" />
            <ol className="log">
              {[...results].reverse().map((line) => (
                <li key={line.id} className={`log-${line.level.toLowerCase()}`}>
                  <Time at={line.logged_at} plain /> <b>{line.level}</b>{" "}
                  <span>{line.message ?? HIDDEN}</span>
                </li>
              ))}
            </ol>
          </>
        )
      }
    </Loaded>
  );
}

export function PayloadTab({ job }: { job: JobDetail }) {
  if (job.payload_hidden) return <Empty title={HIDDEN} />;
  const url = `${window.location.origin}${config.api}jobs/`;
  const again = {
    task: job.task,
    ...job.arguments,
    queue_name: job.queue_name,
    priority: job.priority,
    tags: job.tags,
  };
  return (
    <>
      {job.payload_unreadable && (
        <p className="job-reason">What the row holds is no JSON of ours, and cannot be shown.</p>
      )}
      <Code text={JSON.stringify(job.arguments, null, 2)} label="Arguments" />
      <Code text={JSON.stringify(job.result, null, 2)} label="Result" />
      <p className="copies">
        <Copy text={curl("POST", url, again)} label="Copy as curl: the same again" />
        <Link className="button small" to="/submit" search={{ task: job.task }}>
          Submit another …
        </Link>
      </p>
    </>
  );
}

export function ActionsTab({ id }: { id: string }) {
  const query = useInfiniteQuery({ ...actionsQuery(id), refetchInterval: useInterval() });
  return (
    <Loaded query={allOf(query)}>
      {(results) =>
        results.length === 0 ? (
          <Empty title="Nobody has touched this job">
            <p>Whoever requeues, cancels or moves it, through whatever surface, is named here.</p>
          </Empty>
        ) : (
          <>
            <ol className="timeline">
              {results.map((action) => (
                <li key={action.id}>
                  <b>{action.verb.replaceAll("_", " ")}</b> by {action.actor}{" "}
                  <span className="quiet">
                    through {action.surface}, <Time at={action.at} plain />
                  </span>
                  {action.reason !== "" && `: ${action.reason}`}
                </li>
              ))}
            </ol>
            <Earlier query={query} what="entries" />
          </>
        )
      }
    </Loaded>
  );
}

function Code({ text, label }: { text: string; label: string }) {
  return (
    <figure className="code">
      <figcaption>
        {label} <Copy text={text} label="Copy" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys */}
      <section tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
    </figure>
  );
}
