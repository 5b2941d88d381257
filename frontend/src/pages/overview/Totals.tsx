/** How many jobs there are, and where they stand; what became of attempts in the period. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Stats, statsQuery } from "../../api/resources";
import { useNow } from "../../app/clock";
import { PERIOD_SECONDS, PERIOD_WORDS, type Period } from "../../app/periods";
import {
  age,
  briefCount,
  type Count,
  capital,
  duration,
  number,
  percent,
  plural,
  short,
} from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { RATE_MS, rate } from "../../live/pulse";
import { usePulse, useStats } from "../../live/useStats";
import { Icon, type IconName } from "../../ui/Icon";
import { Panel, Trouble } from "../../ui/parts";

const STATES = ["running", "ready", "retrying", "scheduled", "blocked", "dead"] as const;
const WAITING = ["ready", "retrying", "scheduled", "blocked"] as const;
/** A ready job that has waited longer is worth a look. */
const LATE_SECONDS = 60;

type Counts = Record<string, Count> | undefined;

export function Totals({ period }: { period: Period }) {
  const interval = useInterval();
  const query = useQuery({ ...statsQuery(PERIOD_SECONDS[period]), refetchInterval: interval });
  const told = useStats();
  const stats = query.data;
  const counts = told?.counts ?? stats?.counts;
  const succeeded = stats && (stats.attempts.outcomes.succeeded ?? 0);
  const words = PERIOD_WORDS[period];
  const oldest = useOldest(stats);
  const alive = told?.workers?.alive ?? stats?.workers;
  if (counts === undefined && query.error) return <Trouble error={query.error} />;

  return (
    <div className="totals">
      <Panel title="Jobs">
        <p className="sum">{inWords(succeeded, counts, words)}</p>
        <Shares
          parts={[
            ["succeeded", succeeded ?? 0],
            ...STATES.map((state) => [state, counts?.[state]?.value ?? 0] as const),
          ]}
        />
        <div className="tiles tiles-jobs">
          <Tile name="Committed" icon="succeeded" to="state:succeeded" note={`last ${words}`}>
            {succeeded === undefined ? "–" : briefCount({ value: succeeded, relation: "eq" })}
          </Tile>
          {STATES.map((state) => (
            <Tile
              key={state}
              name={capital(state)}
              icon={state}
              to={`state:${state}`}
              {...remarkOn(state, counts, oldest, alive)}
            >
              {briefCount(counts?.[state])}
            </Tile>
          ))}
        </div>
      </Panel>
      <Attempts stats={stats} words={words} />
    </div>
  );
}

/** What became of attempts: a job that is tried again has several. */
function Attempts({ stats, words }: { stats: Stats | undefined; words: string }) {
  const told = useStats();
  const pulse = usePulse();
  const { succeeded = 0, failed = 0, timed_out = 0, lost = 0 } = stats?.attempts.outcomes ?? {};
  const all = stats?.attempts.count ?? 0;
  const bad = failed + timed_out;
  const [pace, window] =
    told === null
      ? [(stats?.attempts.per_minute ?? 0) / 60, words]
      : [rate(pulse), duration(RATE_MS / 1_000)];
  return (
    <Panel title={`Attempts in the last ${words}`}>
      <p className="sum">
        One start of a job each. {pace > 0 ? `${short(pace)} ended per second` : "None ended"} in
        the last {window}.
      </p>
      <Shares
        parts={[
          ["succeeded", succeeded],
          ["dead", bad],
          ["lost", lost],
          ["blocked", all - succeeded - bad - lost],
        ]}
      />
      <div className="tiles tiles-attempts">
        <Tile name="Ended" icon="queue" to="state:any">
          {number(all)}
        </Tile>
        <Tile
          name="Failed"
          icon="failed"
          to="/errors"
          note={all > 0 ? percent(bad / all) : undefined}
        >
          {number(bad)}
        </Tile>
        <Tile name="Interrupted, run again" icon="lost" to="/workers" note="worker died or stopped">
          {number(lost)}
        </Tile>
      </div>
    </Panel>
  );
}

const totalOf = (counts: Counts, states: readonly string[]): number =>
  states.reduce((sum, state) => sum + (counts?.[state]?.value ?? 0), 0);

/** What is to be said of a figure, and whether it is bad. */
function remarkOn(
  state: string,
  counts: Counts,
  oldest: number | null,
  alive: number | undefined,
): { note?: string; alarm?: boolean } {
  if (state === "dead") return { alarm: (counts?.dead?.value ?? 0) > 0 };
  if (state === "ready" && oldest !== null) {
    return { note: `oldest ${age(oldest)}`, alarm: oldest > LATE_SECONDS };
  }
  if (state !== "running" || alive === undefined) return {};
  if (alive === 0) return { note: "no worker is alive", alarm: true };
  return { note: plural(alive, "worker") };
}

/** How long the oldest ready job has waited; null where none is. */
function useOldest(stats: Stats | undefined): number | null {
  const told = useStats();
  const now = useNow();
  if (told === null) return stats?.oldest_ready_seconds ?? null;
  return told.oldest_ready_at ? (now - Date.parse(told.oldest_ready_at)) / 1_000 : null;
}

/**
 * The figures below in words. No sum of them: what was committed is known as of the last rollup, the
 * others as of the last push, and a job that ended between the two is in neither.
 */
function inWords(succeeded: number | undefined, counts: Counts, words: string): string {
  if (succeeded === undefined || counts === undefined) return "Counting …";
  const isExact = Object.values(counts).every((one) => one.relation === "eq");
  const [running, waiting, dead] = [["running"], WAITING, ["dead"]].map((states) =>
    totalOf(counts, states),
  );
  return `${number(succeeded)} committed in the last ${words}; now ${isExact ? "" : "about "}${number(running ?? 0)} running, ${number(waiting ?? 0)} waiting, ${number(dead ?? 0)} dead.`;
}

/** The same as one bar. */
function Shares({ parts }: { parts: readonly (readonly [string, number])[] }) {
  return (
    <div className="shares" aria-hidden="true">
      {parts.map(
        ([name, value]) =>
          value > 0 && <span key={name} className={`share-${name}`} style={{ flexGrow: value }} />,
      )}
    </div>
  );
}

interface TileProperties {
  name: string;
  icon: IconName;
  /** A filter of jobs, or a page. */
  to: string;
  note?: string;
  alarm?: boolean;
  children: ReactNode;
}

function Tile({ name, icon, to, note, alarm = false, children }: TileProperties) {
  const content = (
    <>
      <span className="tile-name">
        <Icon name={icon} />
        {name}
      </span>
      <span className="tile-value">{children}</span>
      {note !== undefined && <span className="tile-note">{note}</span>}
    </>
  );
  const className = `tile tile-${icon}${alarm ? " is-alarm" : ""}`;
  return to.startsWith("/") ? (
    <Link className={className} to={to}>
      {content}
    </Link>
  ) : (
    <Link className={className} to="/jobs" search={{ q: to }}>
      {content}
    </Link>
  );
}
