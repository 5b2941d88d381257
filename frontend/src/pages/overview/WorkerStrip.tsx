/** Workers at a glance: what each holds, who just died or stopped, who came. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type DeadWorker, type Worker, workersQuery } from "../../api/resources";
import { useNow } from "../../app/clock";
import { duration, plural } from "../../lib/format";
import { deathOf, hasStopped, slotsOf } from "../../lib/words";
import { useInterval } from "../../live/LiveContext";
import { Badge, Empty, Loaded, Panel } from "../../ui/parts";
import { useWorkers } from "../workers/useWorkers";

const SHOWN_DEAD = 6;
const DEAD_SECONDS = 300;
const RATED_SECONDS = 360;

export function WorkerStrip() {
  const queries = useQueryClient();
  const query = useQuery({ ...workersQuery, refetchInterval: useInterval() });
  const now = useNow();
  const told = useWorkers(() => void queries.invalidateQueries({ queryKey: ["workers"] }));
  return (
    <Panel title="Workers" tools={<Link to="/workers">All of them</Link>}>
      <Loaded query={query}>
        {({ results, dead }) => {
          const workers = results.filter((worker) => worker.kind === "worker");
          const lately = dead
            .filter((worker) => worker.dead_seconds < DEAD_SECONDS && worker.kind === "worker")
            .slice(0, SHOWN_DEAD);
          if (workers.length + lately.length === 0) {
            return (
              <Empty title="No worker is alive">
                <p>
                  Jobs wait until one comes: <code>python manage.py runworker</code>
                </p>
              </Empty>
            );
          }
          return (
            <ul className="worker-strip">
              {workers.map((worker) => {
                const running = told.get(worker.id)?.running ?? worker.running;
                const condition = told.get(worker.id)?.condition;
                const expired = worker.is_expired || condition === "expired";
                return (
                  <li key={worker.id} className={expired ? "worker is-expired" : "worker"}>
                    <span className="worker-name">
                      {worker.name || worker.host} <span className="quiet">pid {worker.pid}</span>
                    </span>
                    <Slots slots={worker.slots} running={running} />
                    <span className="worker-note">
                      {expired ? (
                        <Badge name="expired" label="no heartbeat" />
                      ) : worker.draining ? (
                        <Badge name="draining" />
                      ) : (
                        <span className="quiet">{paceOf(worker, now)}</span>
                      )}
                    </span>
                  </li>
                );
              })}
              {lately.map((worker) => {
                const stopped = hasStopped(worker);
                return (
                  <li key={worker.id} className={`worker ${stopped ? "is-stopped" : "is-dead"}`}>
                    <span className="worker-name">
                      {worker.name || worker.host} <span className="quiet">pid {worker.pid}</span>
                    </span>
                    <GoneBadge worker={worker} />
                    {!stopped && (
                      <span className="worker-note quiet">{deathOf(worker.reason)}</span>
                    )}
                  </li>
                );
              })}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** Its rate is one of whole minutes: of a younger worker it says nothing. */
function paceOf(worker: Worker, now: number): string {
  const age = (now - Date.parse(worker.started_at)) / 1_000;
  if (age < RATED_SECONDS) return `started ${duration(Math.max(age, 0))} ago`;
  return `${plural(Math.round(worker.per_minute), "job")} a minute`;
}

/** When a worker went, and whether it died or was told to. */
export function GoneBadge({ worker }: { worker: DeadWorker }) {
  const ago = `${duration(Math.round(worker.dead_seconds))} ago`;
  if (hasStopped(worker)) return <Badge name="stopped" label={`stopped ${ago}`} />;
  return <Badge name="dead" label={`died ${ago}`} />;
}

const MOST_SLOTS = 24;

export function Slots({ slots, running }: { slots: number; running: number }) {
  const shown = Math.min(slots, MOST_SLOTS);
  const width = shown * 9 + 1;
  return (
    <span className="slots">
      <svg width={width} height="10" role="img" aria-label={slotsOf(running, slots)}>
        {Array.from({ length: shown }, (_, at) => (
          <rect
            key={at}
            x={at * 9}
            y="1"
            width="7"
            height="8"
            rx="2"
            className={at < running ? "slot is-busy" : "slot"}
          />
        ))}
      </svg>
      <span className="quiet">{slotsOf(running, slots)}</span>
    </span>
  );
}
