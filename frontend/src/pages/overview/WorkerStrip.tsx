/** Workers at a glance: what each holds, who just died or stopped, who came. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type DeadWorker, type Worker, workersQuery } from "../../api/resources";
import { useNow } from "../../app/clock";
import { deathsInWords, diedLately, goneFor, LATELY_SECONDS, replacements } from "../../lib/crew";
import { duration, number, short } from "../../lib/format";
import { hasStopped, slotsOf } from "../../lib/words";
import { useInterval } from "../../live/LiveContext";
import type { WorkerChange } from "../../live/protocol";
import { Badge, Empty, Loaded, Panel } from "../../ui/parts";
import { useWorkers } from "../workers/useWorkers";

/** Those that died last have a card, then those that stopped; the others are counted. */
const SHOWN_GONE = 4;
/** Rates are of whole minutes: of a younger worker they say nothing. */
export const RATED_SECONDS = 360;

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
            .filter((worker) => goneFor(worker, now) < LATELY_SECONDS && worker.kind === "worker")
            .sort((a, b) => Number(hasStopped(a)) - Number(hasStopped(b)));
          if (workers.length + lately.length === 0) {
            return (
              <Empty title="No worker is alive">
                <p>
                  Jobs wait until one comes: <code>python manage.py runworker</code>
                </p>
              </Empty>
            );
          }
          const replaced = replacements(results, dead);
          return (
            <>
              <p className="sum">{crewInWords(workers.length, diedLately(dead, now), replaced)}</p>
              <ul className="worker-strip">
                {workers.map((worker) => (
                  <Alive key={worker.id} worker={worker} told={told.get(worker.id)} />
                ))}
                {lately.slice(0, SHOWN_GONE).map((worker) => (
                  <li key={worker.id} className={classOf(worker, replaced)}>
                    <WorkerName worker={worker} />
                    <GoneBadge worker={worker} isReplaced={replaced.has(worker.id)} />
                    <span className="worker-note quiet">{whatCame(worker, replaced)}</span>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Alive({ worker, told }: { worker: Worker; told: WorkerChange | undefined }) {
  const now = useNow();
  const expired = worker.is_expired || told?.condition === "expired";
  return (
    <li className={expired ? "worker is-expired" : "worker"}>
      <WorkerName worker={worker} />
      <Slots slots={worker.slots} running={told?.running ?? worker.running} />
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
}

function WorkerName({ worker }: { worker: { name: string; host: string; pid: number } }) {
  return (
    <span className="worker-name">
      {worker.name || worker.host} <span className="quiet">pid {worker.pid}</span>
    </span>
  );
}

/** What came in the place of one that is gone. */
export function whatCame(worker: DeadWorker, replaced: ReadonlyMap<string, number>): string {
  const pid = replaced.get(worker.id);
  if (pid !== undefined) return `replaced by pid ${pid}`;
  return hasStopped(worker) ? "" : `no other ${worker.name || "one"} yet`;
}

/** How many are alive, how many died of late, and whether others came. */
function crewInWords(
  alive: number,
  died: readonly DeadWorker[],
  replaced: ReadonlyMap<string, number>,
): string {
  const living = alive === 0 ? "None is alive" : `${number(alive)} alive`;
  const lately = `in the last ${duration(LATELY_SECONDS)}`;
  if (died.length === 0) return `${living}. None died ${lately}.`;
  const shown = died.length > SHOWN_GONE ? ` (below the last ${SHOWN_GONE} of them)` : "";
  return `${living}. ${number(died.length)} died ${lately}${shown}${deathsInWords(died, replaced)}`;
}

export const isRated = (worker: Worker, now: number): boolean =>
  now - Date.parse(worker.started_at) >= RATED_SECONDS * 1_000;

function paceOf(worker: Worker, now: number): string {
  const age = (now - Date.parse(worker.started_at)) / 1_000;
  if (!isRated(worker, now)) return `started ${duration(Math.max(Math.round(age), 0))} ago`;
  return `${short(worker.per_minute)} attempts/min`;
}

function classOf(worker: DeadWorker, replaced: ReadonlyMap<string, number>): string {
  if (hasStopped(worker)) return "worker is-stopped";
  return replaced.has(worker.id) ? "worker is-dead" : "worker is-dead is-missing";
}

/** When a worker went, and whether it died; red only while no other has come in its place. */
export function GoneBadge({ worker, isReplaced }: { worker: DeadWorker; isReplaced: boolean }) {
  const ago = `${duration(Math.round(goneFor(worker, useNow())))} ago`;
  if (hasStopped(worker)) return <Badge name="stopped" label={`stopped ${ago}`} />;
  return <Badge name={isReplaced ? "died" : "dead"} label={`died ${ago}`} />;
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
