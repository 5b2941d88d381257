/** The last two minutes as they are pushed: ready and running jobs, and what is done a second. */

import { curveMonotoneX } from "@visx/curve";
import { scaleLinear, scaleTime } from "@visx/scale";
import { AreaClosed, Bar, LinePath } from "@visx/shape";
import { useNow } from "../app/clock";
import { useZone } from "../app/preferences";
import { clock, duration, short } from "../lib/format";
import { KEPT_MS, type Pulse, rate } from "../live/pulse";
import { Axes, MARGIN } from "./Axes";
import { ChartFrame } from "./ChartFrame";

export interface Mark {
  at: number;
  label: string;
}

export function PulseChart({ pulse, marks }: { pulse: Pulse; marks: readonly Mark[] }) {
  const zone = useZone();
  const now = useNow();
  const { samples } = pulse;
  const last = samples.at(-1);
  const most = Math.max(10, ...samples.map((one) => Math.max(one.ready + one.running, one.done)));
  const formatX = (at: Date) => clock(at, zone, true);
  const shown = marks.filter((mark) => now - mark.at < KEPT_MS);

  return (
    <ChartFrame
      title="Right now"
      summary={`${last?.ready ?? 0} ready, ${last?.running ?? 0} running, ${short(rate(pulse, now))} done a second`}
      height={190}
      legend={[
        { name: "ready", color: "var(--jq-chart-1)", value: short(last?.ready ?? 0) },
        { name: "running", color: "var(--jq-chart-3)", value: short(last?.running ?? 0) },
        {
          name: "done a second",
          color: "var(--jq-chart-succeeded)",
          value: short(rate(pulse, now)),
        },
        { name: "worker died", color: "var(--jq-chart-failed)", value: String(shown.length) },
      ]}
      columns={["At", "ready", "running", "done"]}
      rows={samples.map((one) => [
        formatX(new Date(one.at)),
        String(one.ready),
        String(one.running),
        String(one.done),
      ])}
      draw={(width, height) => {
        const x = scaleTime<number>({
          domain: [now - KEPT_MS, now],
          range: [MARGIN.left, width - MARGIN.right],
        });
        const y = scaleLinear<number>({
          domain: [0, most],
          range: [height - MARGIN.bottom, MARGIN.top],
          nice: 4,
        });
        const seen = samples.filter((one) => one.at >= now - KEPT_MS);
        const bar = Math.max(1, (width - MARGIN.left - MARGIN.right) / 120 - 1);
        return (
          <>
            <Axes x={x} y={y} {...{ width, height, formatX }} formatY={short} />
            {seen.map((one) => (
              <Bar
                key={one.at}
                x={x(one.at) - bar / 2}
                y={y(one.done)}
                width={bar}
                height={Math.max(0, y(0) - y(one.done))}
                fill="var(--jq-chart-succeeded)"
                opacity={0.75}
              />
            ))}
            <AreaClosed
              data={seen}
              x={(one) => x(one.at)}
              y={(one) => y(one.ready)}
              yScale={y}
              curve={curveMonotoneX}
              fill="var(--jq-chart-1)"
              opacity={0.18}
            />
            <LinePath
              data={seen}
              x={(one) => x(one.at)}
              y={(one) => y(one.ready)}
              curve={curveMonotoneX}
              stroke="var(--jq-chart-1)"
              strokeWidth={2}
            />
            <LinePath
              data={seen}
              x={(one) => x(one.at)}
              y={(one) => y(one.running)}
              curve={curveMonotoneX}
              stroke="var(--jq-chart-3)"
              strokeWidth={2}
            />
            {shown.map((mark) => (
              <g key={`${mark.at} ${mark.label}`}>
                <line
                  x1={x(mark.at)}
                  x2={x(mark.at)}
                  y1={MARGIN.top + 4}
                  y2={height - MARGIN.bottom}
                  stroke="var(--jq-chart-failed)"
                  strokeDasharray="3 3"
                />
                <circle cx={x(mark.at)} cy={MARGIN.top + 4} r={4} fill="var(--jq-chart-failed)">
                  <title>{`${mark.label}, ${duration((now - mark.at) / 1000)} ago`}</title>
                </circle>
              </g>
            ))}
          </>
        );
      }}
    />
  );
}
