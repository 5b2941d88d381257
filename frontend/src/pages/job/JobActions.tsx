/** What may be done with the job, as the server says; what ends something asks first. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { saying } from "../../api/client";
import {
  cancelJob,
  changeJob,
  discardJob,
  type JobDetail,
  requeueJob,
  runJobNow,
} from "../../api/jobs";
import { lastName } from "../../lib/format";
import { ACTION_WORDS, DESTRUCTIVE, type JobAction, PAST } from "../../lib/words";
import { Dialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import { Trouble } from "../../ui/parts";

const AT_ONCE: Partial<Record<JobAction, (id: string) => Promise<JobDetail>>> = {
  requeue: requeueJob,
  run_now: runJobNow,
};
const ORDER = Object.keys(ACTION_WORDS) as JobAction[];

export function JobActions({ job }: { job: JobDetail }) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState<JobAction | null>(null);
  const done = (now: JobDetail, action: JobAction) => {
    queries.setQueryData(["job", job.id], now);
    void queries.invalidateQueries({ queryKey: ["job", job.id] });
    setAsking(null);
    const isAsked = action === "cancel" && now.state === "running";
    notify(isAsked ? "The job was asked to stop." : `The job is ${PAST[action]}.`);
  };
  const act = useMutation({
    mutationFn: (action: JobAction) => {
      const run = AT_ONCE[action];
      if (run === undefined) throw new Error(`${action} asks first`);
      return run(job.id);
    },
    onSuccess: done,
    onError: (error) => notify(saying(error), "refused"),
  });
  const allowed = ORDER.filter((action) => job.allowed_actions.includes(action));
  if (allowed.length === 0) return null;
  return (
    <div className="job-actions">
      {allowed.map((action) => (
        <button
          type="button"
          key={action}
          className={DESTRUCTIVE.has(action) ? "danger-quiet" : undefined}
          disabled={act.isPending}
          onClick={() => (action in AT_ONCE ? act.mutate(action) : setAsking(action))}
        >
          {ACTION_WORDS[action]}
          {DESTRUCTIVE.has(action) && " …"}
        </button>
      ))}
      {asking !== null && (
        <Asking
          job={job}
          action={asking}
          onClose={() => setAsking(null)}
          onDone={(now) => done(now, asking)}
        />
      )}
    </div>
  );
}

interface AskingProperties {
  job: JobDetail;
  action: JobAction;
  onClose: () => void;
  onDone: (job: JobDetail) => void;
}

function Asking({ job, action, onClose, onDone }: AskingProperties) {
  const dismiss = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (DESTRUCTIVE.has(action)) dismiss.current?.focus();
  }, [action]);
  const act = useMutation({
    mutationFn: (given: FormData) => perform(job, action, given),
    onSuccess: onDone,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    act.mutate(new FormData(event.currentTarget));
  };
  const words = ACTION_WORDS[action].replace(" …", "");
  return (
    <Dialog title={`${words}: ${lastName(job.task)}`} onClose={onClose}>
      <form className="fields" onSubmit={submit}>
        <p className="quiet">{job.id}</p>
        <Fields job={job} action={action} />
        {act.error && <Trouble error={act.error} />}
        <div className="dialog-buttons">
          <button type="button" ref={dismiss} onClick={onClose}>
            {action === "cancel" ? "Leave it" : "Cancel"}
          </button>
          <button
            type="submit"
            className={DESTRUCTIVE.has(action) ? "danger" : "primary"}
            disabled={act.isPending}
          >
            {words}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Fields({ job, action }: { job: JobDetail; action: JobAction }) {
  switch (action) {
    case "reprioritize":
      return (
        <label>
          Priority (−100 to 100, larger is sooner)
          <input
            type="number"
            name="priority"
            min={-100}
            max={100}
            defaultValue={job.priority}
            required
          />
        </label>
      );
    case "move":
      return (
        <label>
          Queue
          <input name="queue" defaultValue={job.queue_name} required maxLength={128} />
        </label>
      );
    case "reschedule":
      return (
        <label>
          Due (in your own time zone)
          <input type="datetime-local" name="at" required />
        </label>
      );
    default:
      return (
        <>
          <p>
            {action === "discard"
              ? "A discarded job is given up for good; it can be requeued, but nobody is told of it again."
              : job.state === "running"
                ? "Its worker is asked to stop. Whatever the attempt comes to, the job does not run again."
                : "It will not run."}
          </p>
          <label>
            Reason
            <input name="reason" maxLength={64} />
          </label>
          {action === "cancel" && job.state === "running" && (
            <label className="check-line">
              <input type="checkbox" name="force" /> End the attempt at once; its writes roll back
            </label>
          )}
        </>
      );
  }
}

function perform(job: JobDetail, action: JobAction, given: FormData): Promise<JobDetail> {
  const text = (name: string) => String(given.get(name) ?? "").trim();
  if (action === "cancel") return cancelJob(job.id, text("reason"), given.get("force") === "on");
  if (action === "discard") return discardJob(job.id, text("reason"));
  if (action === "reprioritize") return changeJob(job.id, { priority: Number(text("priority")) });
  if (action === "move") return changeJob(job.id, { queue_name: text("queue") });
  return changeJob(job.id, { run_after: new Date(text("at")).toISOString() });
}
