/** Throughput and latency over the period. Loaded after the figures. */

import { useQuery } from "@tanstack/react-query";
import { type By, latencyQuery, throughputQuery } from "../../api/page";
import { statsQuery, workersQuery } from "../../api/resources";
import { LatencyChart } from "../../charts/LatencyChart";
import { StackedBars } from "../../charts/StackedBars";
import { duration, lastName } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Choice, Empty, Loaded, Panel } from "../../ui/parts";

const BY: [By, string][] = [
  ["outcome", "outcome"],
  ["queue", "queue"],
  ["task", "task"],
  ["worker", "worker"],
];

/** "minute", or such as "5 min". */
const stepOf = (seconds: number): string => (seconds === 60 ? "minute" : duration(seconds));

interface Properties {
  period: number;
  /** Such as "in the last 15 min". */
  words: string;
  by: By;
  onBy: (by: By) => void;
}

export default function Charts({ period, words, by, onBy }: Properties) {
  const interval = useInterval();
  const throughput = useQuery({ ...throughputQuery(period, by), refetchInterval: interval });
  const latency = useQuery({ ...latencyQuery(period), refetchInterval: interval });
  const stats = useQuery({ ...statsQuery(period), refetchInterval: interval });
  const workers = useQuery(workersQuery);
  const label = (name: string) => {
    if (by === "task") return lastName(name);
    if (by !== "worker") return name;
    const all = [...(workers.data?.results ?? []), ...(workers.data?.dead ?? [])];
    const found = all.find((worker) => worker.id.replaceAll("-", "") === name.replaceAll("-", ""));
    return found === undefined ? name.slice(0, 8) : `${found.name || found.host} ${found.pid}`;
  };
  return (
    <div className="columns">
      <Panel title="Throughput" tools={<Choice label="By" all={BY} value={by} onChange={onBy} />}>
        <Loaded query={throughput}>
          {(found) =>
            found.lines.length === 0 ? (
              <Empty title="No attempt has ended in this period">
                <p>
                  Attempts are counted by <code>runworker</code> or <code>runscheduler</code>, some
                  seconds after they ended.
                </p>
              </Empty>
            ) : (
              <StackedBars
                title={`Attempts that ended per ${stepOf(found.step_seconds)}, ${words}`}
                starts={found.starts}
                stepSeconds={found.step_seconds}
                lines={found.lines.map((line) => ({ ...line, label: label(line.name) }))}
              />
            )
          }
        </Loaded>
      </Panel>
      <Panel title="Waiting and running">
        <Loaded query={latency}>
          {(found) =>
            !found.waits.some((spread) => spread.count > 0) ? (
              <Empty title="No times are known yet">
                <p>
                  Once attempts end, it stands here within which time half of them, 95 % and 99 %
                  began and were done.
                </p>
              </Empty>
            ) : (
              <>
                <LatencyChart
                  title={`Waiting, from due to started, ${words}`}
                  starts={found.starts}
                  spreads={found.waits}
                  total={stats.data?.attempts.wait}
                />
                <LatencyChart
                  title={`Running, from started to ended, ${words}`}
                  starts={found.starts}
                  spreads={found.runs}
                  total={stats.data?.attempts.run}
                />
              </>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}
