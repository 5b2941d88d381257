import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type FormEvent, useMemo, useRef, useState } from "react";
import { Refused, type Schemas, saying } from "../../api/client";
import { type JobRequest, submitJob, type TaskDocument, tasksQuery } from "../../api/jobs";
import { config } from "../../app/config";
import { lastName } from "../../lib/format";
import { callOf, type Field, fieldsOf, type Schema } from "../../lib/schema";
import { curl } from "../../lib/words";
import { Badge, Copy, Empty, Loaded } from "../../ui/parts";
import { ArgumentField } from "./ArgumentField";

const route = getRouteApi("/submit");
type Made = Schemas["EnqueuedJob"];

export function SubmitPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(tasksQuery);
  return (
    <>
      <h1>Submit a job</h1>
      <Loaded query={query}>
        {({ tasks }) => {
          if (tasks.length === 0) return <NoTasks />;
          const task = tasks.find((one) => one.name === search.task) ?? tasks[0];
          return (
            <>
              <label className="field task-choice">
                Task
                <select
                  value={task?.name}
                  onChange={(event) => navigate({ search: { task: event.target.value } })}
                >
                  {tasks.map((one) => (
                    <option key={one.name} value={one.name}>
                      {one.name}
                    </option>
                  ))}
                </select>
              </label>
              {task !== undefined && <TaskForm key={task.name} task={task} />}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function NoTasks() {
  return (
    <Empty title="No task is offered here">
      <p>
        Write <code>@task(expose={'{"staff"}'})</code> above one that staff may start, here and in
        the admin, and restart the server. You also need the permission{" "}
        <code>jobqueue.enqueue_job</code>.
      </p>
    </Empty>
  );
}

const newKey = () => crypto.randomUUID?.() ?? `page-${Date.now()}-${Math.random()}`;

function TaskForm({ task }: { task: TaskDocument }) {
  const fields = useMemo(() => fieldsOf(task.args as Schema, task.kwargs as Schema), [task]);
  const [written, setWritten] = useState<Record<string, string>>({});
  const [options, setOptions] = useState({
    queue: "",
    priority: "",
    after: "",
    tags: "",
    unique: "",
  });
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [made, setMade] = useState<Made[]>([]);
  // One key for one job: a repeat after a lost answer makes no second one.
  const key = useRef(newKey());
  const { call } = callOf(fields, written);
  const request = requestOf(task, call, options);

  const submit = useMutation({
    mutationFn: (job: JobRequest) => submitJob(job, key.current),
    onSuccess: (job) => {
      key.current = newKey();
      setErrors({});
      setMade((before) => [job, ...before].slice(0, 10));
    },
    onError: (error) => {
      // The server has judged it: what comes next is another request.
      if (error instanceof Refused) {
        key.current = newKey();
        setErrors(pointed(error, fields));
      }
    },
  });

  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const checked = callOf(fields, written);
    setErrors(checked.errors);
    if (Object.keys(checked.errors).length === 0) submit.mutate(request);
  };
  const change = (name: string, value: string) => {
    setWritten((before) => ({ ...before, [name]: value }));
    setErrors(({ [name]: _, ...rest }) => rest);
  };

  return (
    <>
      <form className="panel fields submit-form" onSubmit={onSubmit} noValidate>
        {task.description !== "" && <p>{task.description}</p>}
        {fields.length === 0 && <p className="quiet">It takes no arguments.</p>}
        {fields.map((field) => (
          <ArgumentField
            key={field.name}
            field={field}
            value={written[field.name] ?? field.initial}
            error={errors[field.name]}
            onChange={(value) => change(field.name, value)}
          />
        ))}
        <details className="options">
          <summary>Queue, time, priority, tags</summary>
          <OptionFields task={task} options={options} onChange={setOptions} />
        </details>
        {submit.error && (
          <p className="field-error" role="alert">
            {saying(submit.error)}
          </p>
        )}
        <div className="form-buttons">
          <button type="submit" className="primary" disabled={submit.isPending}>
            {submit.isPending ? "Submitting …" : `Submit ${lastName(task.name)}`}
          </button>
          <Copy
            text={curl("POST", `${window.location.origin}${config.api}jobs/`, request)}
            label="Copy as curl"
          />
        </div>
      </form>
      <div role="status" className="made">
        {made.map((job) => (
          <p key={`${job.id} ${job.already_enqueued}`}>
            <Badge name={job.state} />{" "}
            <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
              {job.id}
            </Link>{" "}
            {job.already_enqueued
              ? "holds this unique key already; no second job was made"
              : `is in ${job.queue_name}`}
          </p>
        ))}
      </div>
    </>
  );
}

interface Options {
  queue: string;
  priority: string;
  after: string;
  tags: string;
  unique: string;
}

function requestOf(task: TaskDocument, call: { args: unknown[]; kwargs: object }, given: Options) {
  const tags = given.tags.split(/[\s,]+/).filter(Boolean);
  const request: Record<string, unknown> = { task: task.name };
  if (call.args.length > 0) request.args = call.args;
  if (Object.keys(call.kwargs).length > 0) request.kwargs = call.kwargs;
  if (given.queue.trim() !== "") request.queue_name = given.queue.trim();
  if (given.priority !== "") request.priority = Number(given.priority);
  if (given.after.trim() !== "") request.run_after = given.after.trim();
  if (given.unique.trim() !== "") request.unique_key = given.unique.trim();
  if (tags.length > 0) request.tags = tags;
  return request as JobRequest;
}

/** What the server complains about, by field: its pointers lead into `kwargs` and `args`. */
function pointed(error: Refused, fields: readonly Field[]): Record<string, string> {
  const found: Record<string, string> = {};
  const placed = fields.filter((field) => field.byPlace);
  for (const { pointer, detail } of error.problem.errors ?? []) {
    const [, where, name = ""] = pointer?.split("/") ?? [];
    const field = where === "args" ? placed[Number(name)]?.name : name;
    if (where === "kwargs" || where === "args") found[field ?? name] = detail;
  }
  return found;
}

interface OptionProperties {
  task: TaskDocument;
  options: Options;
  onChange: (options: Options) => void;
}

function OptionFields({ task, options, onChange }: OptionProperties) {
  const set = (name: keyof Options) => (event: { target: { value: string } }) =>
    onChange({ ...options, [name]: event.target.value });
  return (
    <div className="field-grid">
      <label>
        Queue
        <input placeholder={task.queue_name} value={options.queue} onChange={set("queue")} />
      </label>
      <label>
        Priority
        <input
          type="number"
          min={-100}
          max={100}
          placeholder={String(task.priority)}
          value={options.priority}
          onChange={set("priority")}
        />
      </label>
      <label>
        Run after
        <input
          placeholder="PT15M, or a time with its zone"
          value={options.after}
          onChange={set("after")}
        />
      </label>
      <label>
        Tags
        <input placeholder="order:42 vip" value={options.tags} onChange={set("tags")} />
      </label>
      <label>
        Unique key
        <input value={options.unique} onChange={set("unique")} />
      </label>
    </div>
  );
}
