import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type DeadWorker, drainWorker, type Worker, workersQuery } from "../../api/resources";
import { serverTime, useNow } from "../../app/clock";
import { ofThem, replacements } from "../../lib/crew";
import { duration, number } from "../../lib/format";
import { hasStopped } from "../../lib/words";
import { useInterval, useLive } from "../../live/LiveContext";
import { Dialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import { Badge, Empty, Loaded, Panel, Time, Trouble } from "../../ui/parts";
import { GoneBadge, isRated, RATED_SECONDS, Slots, whatCame } from "../overview/WorkerStrip";
import { useWorkers } from "./useWorkers";

export function WorkersPage() {
  const queries = useQueryClient();
  const interval = useInterval();
  const { mode } = useLive();
  // Rates and heartbeats are no news of their own: they are read with the clock.
  const query = useQuery({ ...workersQuery, refetchInterval: mode === "live" ? 5_000 : interval });
  const told = useWorkers(() => void queries.invalidateQueries({ queryKey: ["workers"] }));
  const [draining, setDraining] = useState<Worker | null>(null);
  return (
    <>
      <h1>Workers</h1>
      <Loaded query={query}>
        {({ results, dead }) => (
          <>
            <Versions workers={results} />
            {results.length === 0 ? (
              <Empty title="No worker is alive">
                <p>
                  Jobs wait until one comes: <code>python manage.py runworker</code>
                </p>
              </Empty>
            ) : (
              <div className="table-wrap">
                <table className="cards">
                  <thead>
                    <tr>
                      <th>Process</th>
                      <th>State</th>
                      <th>Busy</th>
                      <th className="number">Attempts/min</th>
                      <th>Queues</th>
                      <th>Started</th>
                      <th className="number">Heartbeat</th>
                      <th>
                        <span className="hidden">What can be done</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {results.map((worker) => (
                      <Row
                        key={worker.id}
                        worker={worker}
                        running={told.get(worker.id)?.running ?? worker.running}
                        readAt={query.dataUpdatedAt}
                        onDrain={() => setDraining(worker)}
                      />
                    ))}
                  </tbody>
                </table>
              </div>
            )}
            <Panel title="Gone in the last hour">
              <Gone dead={dead} replaced={replacements(results, dead)} />
            </Panel>
          </>
        )}
      </Loaded>
      {draining !== null && <DrainDialog worker={draining} onClose={() => setDraining(null)} />}
    </>
  );
}

/** The last few of those that are gone; the others when they are asked for. */
const SHOWN_GONE = 5;

interface GoneProperties {
  dead: readonly DeadWorker[];
  replaced: ReadonlyMap<string, number>;
}

function Gone({ dead, replaced }: GoneProperties) {
  const [all, setAll] = useState(false);
  if (dead.length === 0) {
    return (
      <p className="quiet">
        None. One that is killed shows here within seconds; its jobs are run again by others.
      </p>
    );
  }
  const died = dead.filter((worker) => !hasStopped(worker));
  const others = died.filter((worker) => replaced.has(worker.id)).length;
  return (
    <>
      <p className="sum">
        {died.length === 0
          ? "None died"
          : `${number(died.length)} died, ${ofThem(others, died.length)} replaced by a process of the same name`}
        ; {stoppedInWords(dead.length - died.length)} stopped on purpose. What a worker ran when it
        died is run again.
      </p>
      <div className="table-in-panel">
        <table className="cards">
          <thead>
            <tr>
              <th>Process</th>
              <th>When</th>
              <th>Why</th>
              <th>Since then</th>
            </tr>
          </thead>
          <tbody>
            {dead.slice(0, all ? undefined : SHOWN_GONE).map((worker) => (
              <tr key={worker.id}>
                <td data-label="Process">
                  {worker.name || worker.kind}
                  <span className="row-note">
                    {worker.kind} on {worker.host} · pid {worker.pid}
                  </span>
                </td>
                <td data-label="When">
                  <GoneBadge worker={worker} isReplaced={replaced.has(worker.id)} />
                </td>
                <td data-label="Why">
                  {hasStopped(worker) ? "stopped on purpose" : worker.reason}
                </td>
                <td data-label="Since then">{whatCame(worker, replaced) || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!all && dead.length > SHOWN_GONE && (
        <button type="button" className="small" onClick={() => setAll(true)}>
          Show all {number(dead.length)}
        </button>
      )}
    </>
  );
}

const stoppedInWords = (some: number): string =>
  some < 2 ? `${some === 0 ? "none" : "one"} was` : `${number(some)} were`;

function Versions({ workers }: { workers: readonly Worker[] }) {
  const versions = [...new Set(workers.map((worker) => worker.version).filter(Boolean))];
  if (versions.length < 2) return null;
  return (
    <p className="job-reason">
      Several versions run side by side: {versions.join(", ")}. After a deployment that is normal
      for some minutes.
    </p>
  );
}

interface RowProperties {
  worker: Worker;
  running: number;
  readAt: number;
  onDrain: () => void;
}

function Row({ worker, running, readAt, onDrain }: RowProperties) {
  const now = useNow();
  const heartbeat = worker.heartbeat_seconds + Math.max(0, now - serverTime(readAt)) / 1_000;
  return (
    <tr>
      <td data-label="Process">
        <Link to="/jobs" search={{ q: `worker:${worker.id}` }}>
          {worker.name || worker.kind}
        </Link>
        <span className="row-note">
          {worker.kind} on {worker.host} · pid {worker.pid} · version {worker.version}
        </span>
      </td>
      <td data-label="State">
        {worker.is_expired ? (
          <Badge name="expired" label="lease ran out" />
        ) : worker.draining ? (
          <Badge name="draining" />
        ) : (
          <Badge name="alive" />
        )}
      </td>
      <td data-label="Busy">
        {worker.slots > 0 ? <Slots slots={worker.slots} running={running} /> : "–"}
      </td>
      <td data-label="Per minute" className="number">
        {isRated(worker, now) ? (
          number(Math.round(worker.per_minute * 10) / 10)
        ) : (
          <span className="quiet">known once {duration(RATED_SECONDS)} old</span>
        )}
        {isRated(worker, now) && worker.failed_per_minute > 0 && (
          <span className="row-note">
            {number(Math.round(worker.failed_per_minute * 10) / 10)}/min of them failed
          </span>
        )}
      </td>
      <td data-label="Queues">
        {worker.queues.length === 0 ? "every queue" : worker.queues.join(", ")}
      </td>
      <td data-label="Started">
        <Time at={worker.started_at} />
      </td>
      <td data-label="Heartbeat" className="number">
        {duration(Math.round(heartbeat))} ago
      </td>
      <td className="row-ways">
        {worker.kind === "worker" && !worker.draining && (
          <button type="button" className="small" onClick={onDrain}>
            Drain …
          </button>
        )}
      </td>
    </tr>
  );
}

function DrainDialog({ worker, onClose }: { worker: Worker; onClose: () => void }) {
  const queries = useQueryClient();
  const drain = useMutation({
    mutationFn: () => drainWorker(worker.id),
    onSuccess: () => {
      notify(`${worker.name || worker.id} drains.`);
      void queries.invalidateQueries({ queryKey: ["workers"] });
      onClose();
    },
  });
  return (
    <Dialog title={`Drain ${worker.name || worker.kind}`} onClose={onClose}>
      <p>
        It ends the {number(worker.running)} jobs in hand, claims nothing more, and exits. Whatever
        supervises it may start it again.
      </p>
      {drain.error && <Trouble error={drain.error} />}
      <div className="dialog-buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="danger"
          disabled={drain.isPending}
          onClick={() => drain.mutate()}
        >
          Drain
        </button>
      </div>
    </Dialog>
  );
}
