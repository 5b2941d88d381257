/** What there is at this moment, in large figures; each leads to the jobs that it counts. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { statsQuery } from "../../api/resources";
import { useNow } from "../../app/clock";
import { PERIOD_SECONDS, type Period } from "../../app/periods";
import { type Count, count, duration, number, percent, short } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { rate } from "../../live/pulse";
import { usePulse, useStats } from "../../live/useStats";
import { Icon, type IconName } from "../../ui/Icon";
import { Trouble } from "../../ui/parts";

const STATES = ["ready", "running", "retrying", "scheduled", "blocked", "dead"] as const;

export function Tiles({ period }: { period: Period }) {
  const interval = useInterval();
  const query = useQuery({ ...statsQuery(PERIOD_SECONDS[period]), refetchInterval: interval });
  const told = useStats();
  const pulse = usePulse();
  const now = useNow();
  const stats = query.data;
  const counts = told?.counts ?? stats?.counts;
  if (counts === undefined && query.error) return <Trouble error={query.error} />;

  const since = told?.oldest_ready_at;
  const oldest =
    told === null
      ? (stats?.oldest_ready_seconds ?? null)
      : since
        ? (now - Date.parse(since)) / 1_000
        : null;
  const alive = told?.workers?.alive ?? stats?.workers;
  const outcomes = stats?.attempts.outcomes ?? {};
  const succeeded = outcomes.succeeded ?? 0;
  const failed = (outcomes.failed ?? 0) + (outcomes.timed_out ?? 0);
  const all = stats?.attempts.count ?? 0;

  return (
    <div className="tiles">
      {STATES.map((state) => (
        <Tile key={state} name={capital(state)} icon={state} to={`state:${state}`}>
          {count(counts?.[state])}
        </Tile>
      ))}
      <Tile name="Oldest ready" icon="scheduled" to="state:ready" alarm={(oldest ?? 0) > 60}>
        {oldest === null ? "none" : duration(oldest)}
      </Tile>
      <Tile name="Workers alive" icon="alive" to="/workers" alarm={alive === 0}>
        {alive === undefined ? "–" : number(alive)}
      </Tile>
      <Tile name="Done a second" icon="succeeded" to="state:succeeded">
        {told === null ? short((stats?.attempts.per_minute ?? 0) / 60) : short(rate(pulse, now))}
      </Tile>
      <Tile name="Committed" period={period} icon="succeeded" to="state:succeeded">
        {number(succeeded)}{" "}
        <small>
          of {committedOf(succeeded, counts)}
          <span className="wide-only"> jobs</span>
        </small>
      </Tile>
      <Tile name="Failures" period={period} icon="failed" to="/errors">
        {number(failed)}{" "}
        {all > 0 && (
          <small>
            {percent(failed / all)}
            <span className="hidden"> of attempts</span>
          </small>
        )}
      </Tile>
      <Tile name="Lost, redone" period={period} icon="lost" to="/workers">
        {number(outcomes.lost ?? 0)}
      </Tile>
    </div>
  );
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** Those that have succeeded, and those that still might: live ones and dead letters. */
function committedOf(succeeded: number, counts: Record<string, Count> | undefined): string {
  const others = Object.values(counts ?? {});
  const total = others.reduce((sum, one) => sum + one.value, succeeded);
  const isExact = others.every((one) => one.relation === "eq");
  return `${isExact ? "" : "~"}${number(total)}`;
}

interface TileProperties {
  name: string;
  icon: IconName;
  /** A filter of jobs, or a page. */
  to: string;
  alarm?: boolean;
  period?: Period;
  children: ReactNode;
}

function Tile({ name, icon, to, alarm = false, period, children }: TileProperties) {
  const content = (
    <>
      <span className="tile-name">
        <Icon name={icon} />
        {name}
        {period !== undefined && <span className="tile-period"> · {period}</span>}
      </span>
      <span className="tile-value">{children}</span>
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
