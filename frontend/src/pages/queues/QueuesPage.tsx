import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { saying } from "../../api/client";
import { changeQueue, type Queue, queuesQuery } from "../../api/resources";
import { quoted } from "../../lib/filter";
import { age, count, duration, number } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Dialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import { Badge, Empty, Loaded, Time, Trouble } from "../../ui/parts";
import { useQueues } from "./useQueues";

type Asking = { queue: Queue; what: "pause" | "limit" };

export function QueuesPage() {
  const queries = useQueryClient();
  const query = useQuery({ ...queuesQuery, refetchInterval: useInterval() });
  const told = useQueues();
  const [asking, setAsking] = useState<Asking | null>(null);
  const resume = useMutation({
    mutationFn: (name: string) => changeQueue(name, { paused: false }),
    onSuccess: (queue) => {
      notify(`${queue.name} goes on.`);
      void queries.invalidateQueries({ queryKey: ["queues"] });
    },
    onError: (error) => notify(saying(error), "refused"),
  });
  return (
    <>
      <h1>Queues</h1>
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title="No queue is known yet">
              <p>
                Queues are named in <code>TASKS</code>, or come with the first job that names one.
              </p>
            </Empty>
          ) : (
            <div className="table-wrap">
              <table className="cards">
                <thead>
                  <tr>
                    <th>Queue</th>
                    <th>State</th>
                    <th className="number">Ready</th>
                    <th className="number">Oldest</th>
                    <th>Limit</th>
                    <th>
                      <span className="hidden">What can be done</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {results.map((queue) => {
                    const now = told(queue);
                    return (
                      <tr key={queue.name}>
                        <td data-label="Queue">
                          <Link to="/jobs" search={{ q: `queue:${quoted(queue.name)}` }}>
                            {queue.name}
                          </Link>
                        </td>
                        <td data-label="State">
                          {now.paused ? (
                            <>
                              <Badge name="paused" />
                              <span className="row-note">
                                by {now.paused_by} <Time at={queue.paused_at} />
                                {now.paused_reason !== "" && `: ${now.paused_reason}`}
                              </span>
                            </>
                          ) : (
                            <Badge name="alive" label="open" />
                          )}
                        </td>
                        <td data-label="Ready" className="number">
                          {count(now.ready)}
                        </td>
                        <td data-label="Oldest" className="number">
                          {age(now.oldest)}
                        </td>
                        <td data-label="Limit">
                          <LimitNow limit={queue.limit} />
                        </td>
                        <td className="row-ways">
                          {queue.allowed_actions.includes("pause") && (
                            <button
                              type="button"
                              className="small"
                              onClick={() => setAsking({ queue, what: "pause" })}
                            >
                              Pause …
                            </button>
                          )}
                          {queue.allowed_actions.includes("resume") && (
                            <button
                              type="button"
                              className="small primary"
                              disabled={resume.isPending}
                              onClick={() => resume.mutate(queue.name)}
                            >
                              Resume
                            </button>
                          )}
                          {queue.allowed_actions.includes("set_limit") && (
                            <button
                              type="button"
                              className="small"
                              onClick={() => setAsking({ queue, what: "limit" })}
                            >
                              Limit …
                            </button>
                          )}
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {asking?.what === "pause" && (
        <PauseDialog queue={asking.queue} onClose={() => setAsking(null)} />
      )}
      {asking?.what === "limit" && (
        <LimitDialog queue={asking.queue} onClose={() => setAsking(null)} />
      )}
    </>
  );
}

function LimitNow({ limit }: { limit: Queue["limit"] }) {
  if (limit === null || (limit.running === null && limit.rate === null)) {
    return <span className="quiet">none</span>;
  }
  return (
    <>
      {limit.running !== null && `${number(limit.running)} at once`}
      {limit.running !== null && limit.rate !== null && ", "}
      {limit.rate !== null && `${number(limit.rate)} in ${duration(limit.per)}`}
      <span className="row-note">
        {number(limit.running_now)} run
        {limit.blocked_now > 0 && `, ${number(limit.blocked_now)} wait for it`}
      </span>
    </>
  );
}

interface DialogProperties {
  queue: Queue;
  onClose: () => void;
}

function useQueueChange(onClose: () => void, done: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, ...change }: { name: string } & Parameters<typeof changeQueue>[1]) =>
      changeQueue(name, change),
    onSuccess: () => {
      notify(done);
      void queries.invalidateQueries({ queryKey: ["queues"] });
      onClose();
    },
  });
}

function PauseDialog({ queue, onClose }: DialogProperties) {
  const change = useQueueChange(onClose, `${queue.name} is paused.`);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const reason = String(new FormData(event.currentTarget).get("reason") ?? "");
    change.mutate({ name: queue.name, paused: true, reason });
  };
  return (
    <Dialog title={`Pause ${queue.name}`} onClose={onClose}>
      <form className="fields" onSubmit={submit}>
        <p>
          Its jobs wait until it is resumed; those that run go on. {count(queue.ready)} are ready
          now.
        </p>
        <label>
          Reason, for whoever finds it paused
          <input name="reason" maxLength={255} required />
        </label>
        {change.error && <Trouble error={change.error} />}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="danger" disabled={change.isPending}>
            Pause
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function LimitDialog({ queue, onClose }: DialogProperties) {
  const change = useQueueChange(onClose, `The limit of ${queue.name} holds.`);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const whole = (name: string) => (given.get(name) ? Number(given.get(name)) : null);
    const running = whole("running");
    const rate = whole("rate");
    const limit =
      running === null && rate === null
        ? null
        : { running, rate, per: rate === null ? null : (whole("per") ?? 60) };
    change.mutate({ name: queue.name, limit, reason: String(given.get("reason") ?? "") });
  };
  return (
    <Dialog title={`Limit of ${queue.name}`} onClose={onClose}>
      <form className="fields" onSubmit={submit}>
        <label>
          At most this many running at once (empty: any number)
          <input
            type="number"
            name="running"
            min={0}
            defaultValue={queue.limit?.running ?? undefined}
          />
        </label>
        <div className="field-row">
          <label>
            At most this many starts
            <input
              type="number"
              name="rate"
              min={1}
              defaultValue={queue.limit?.rate ?? undefined}
            />
          </label>
          <label>
            in every so many seconds
            <input
              type="number"
              name="per"
              min={0.001}
              step="any"
              defaultValue={queue.limit?.per ?? undefined}
            />
          </label>
        </div>
        <label>
          Reason
          <input name="reason" maxLength={255} />
        </label>
        {change.error && <Trouble error={change.error} />}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={change.isPending}>
            Set the limit
          </button>
        </div>
      </form>
    </Dialog>
  );
}
