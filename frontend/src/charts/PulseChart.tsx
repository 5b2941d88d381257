/**
 * The last two minutes as they are pushed. Two drawings share the time, as they have two units:
 * attempts that ended a second, and jobs that ran or were ready at a moment.
 */

import { curveMonotoneX } from "@visx/curve";
import { scaleLinear, scaleTime } from "@visx/scale";
import { AreaClosed, Bar, LinePath } from "@visx/shape";
import { useNow } from "../app/clock";
import { useZone } from "../app/preferences";
import { clock, duration, number, short } from "../lib/format";
import { BAR_MS, bars, KEPT_MS, type Pulse, RATE_MS, rate, type Sample } from "../live/pulse";
import { Axes, MARGIN } from "./Axes";
import { ChartFrame } from "./ChartFrame";

const ENDED = "var(--jq-chart-6)";
const RUNNING = "var(--jq-chart-3)";
const READY = "var(--jq-chart-1)";
const DIED = "var(--jq-chart-failed)";

const HEIGHT = 268;
/** Where the upper drawing begins, and where the lower one does: above each stands its unit. */
const UPPER = 16;
const LOWER = 152;

export interface Mark {
  at: number;
  label: string;
}

export function PulseChart({ pulse, marks }: { pulse: Pulse; marks: readonly Mark[] }) {
  const zone = useZone();
  // The newest sample may be younger than the clock, which goes in whole seconds.
  const now = Math.max(useNow(), pulse.samples.at(-1)?.at ?? 0);
  const since = now - KEPT_MS;
  const samples = pulse.samples.filter((one) => one.at >= since);
  const ended = bars(pulse).filter((one) => one.from >= since);
  const last = samples.at(-1);
  const shown = marks.filter((mark) => mark.at >= since);
  const pace = short(rate(pulse));
  const [ready, running] = [last?.ready ?? 0, last?.running ?? 0];
  const recently = `last ${duration(RATE_MS / 1_000)}`;
  const formatX = (at: Date) => clock(at, zone, true);

  return (
    <ChartFrame
      title="The last 2 minutes"
      summary={`In the ${recently} ${pace} attempts ended per second; now ${running} jobs run, ${ready} are ready; ${shown.length} workers died.`}
      height={HEIGHT}
      legend={[
        { name: `attempts ended per second, ${recently}`, color: ENDED, value: pace },
        { name: "jobs running", color: RUNNING, value: short(running) },
        { name: "jobs ready", color: READY, value: short(ready) },
        { name: "worker deaths", color: DIED, value: number(shown.length) },
      ]}
      columns={["From", "attempts ended per second", "jobs running", "jobs ready"]}
      rows={ended.map(({ from, perSecond }) => {
        const then = samples.find((one) => one.at >= from);
        return [
          formatX(new Date(from)),
          short(perSecond),
          then === undefined ? "–" : number(then.running),
          then === undefined ? "–" : number(then.ready),
        ];
      })}
      draw={(width, height) => {
        const x = scaleTime<number>({
          domain: [since, now],
          range: [MARGIN.left, width - MARGIN.right],
        });
        const seen = x(Math.max(since, pulse.samples[0]?.at ?? now));
        const unit = { x: MARGIN.left, className: "unit" };
        return (
          <>
            <Unseen width={seen - MARGIN.left} height={height - UPPER - MARGIN.bottom} />
            <g transform={`translate(0, ${UPPER})`}>
              <Pace x={x} ended={ended} width={width} height={LOWER - UPPER - 12} />
            </g>
            <g transform={`translate(0, ${LOWER})`}>
              <Jobs
                x={x}
                samples={samples}
                width={width}
                height={height - LOWER}
                formatX={formatX}
              />
            </g>
            {shown.map((mark) => (
              <g key={`${mark.at} ${mark.label}`}>
                {/* in two parts: what is written between the drawings stays readable */}
                {[
                  [UPPER + MARGIN.top, LOWER - 12 - MARGIN.bottom] as const,
                  [LOWER + MARGIN.top, height - MARGIN.bottom] as const,
                ].map(([y1, y2]) => (
                  <line
                    key={y1}
                    x1={x(mark.at)}
                    x2={x(mark.at)}
                    y1={y1}
                    y2={y2}
                    stroke={DIED}
                    strokeOpacity={0.55}
                    strokeDasharray="2 4"
                  />
                ))}
                <circle cx={x(mark.at)} cy={UPPER + MARGIN.top} r={4} fill={DIED}>
                  <title>{`${mark.label}, ${duration(Math.round((now - mark.at) / 1000))} ago`}</title>
                </circle>
              </g>
            ))}
            <text {...unit} y={UPPER - 5}>
              attempts ended per second{width > 480 && ", whatever became of them"}
            </text>
            <text {...unit} y={LOWER - 5}>
              jobs running and ready at each moment
            </text>
          </>
        );
      }}
    />
  );
}

/** What was before the page was opened: nobody has counted it, which is not nothing. */
function Unseen({ width, height }: { width: number; height: number }) {
  if (width < 4) return null;
  return (
    <g transform={`translate(${MARGIN.left}, ${UPPER + MARGIN.top})`}>
      <rect width={width} height={height - MARGIN.top} fill="var(--darkened-bg)" />
      {width > 200 && (
        <text className="unit" x={width / 2} y={(LOWER - UPPER) / 2 - 12} textAnchor="middle">
          before this page was opened
        </text>
      )}
    </g>
  );
}

interface Drawing {
  x: ReturnType<typeof scaleTime<number>>;
  width: number;
  height: number;
}

const scaleTo = (most: number, height: number) =>
  scaleLinear<number>({
    domain: [0, most],
    range: [height - MARGIN.bottom, MARGIN.top],
    nice: 3,
  });

function Pace({ x, ended, width, height }: Drawing & { ended: ReturnType<typeof bars> }) {
  const y = scaleTo(Math.max(3, ...ended.map((one) => one.perSecond)), height);
  const wide = ((width - MARGIN.left - MARGIN.right) * BAR_MS) / KEPT_MS;
  return (
    <>
      <Axes {...{ x, y, width, height }} ticks={3} formatX={() => ""} formatY={short} />
      {ended.map((one) => (
        <Bar
          key={one.from}
          x={x(one.from) + 0.5}
          y={y(one.perSecond)}
          width={Math.max(1, wide - 1)}
          height={Math.max(0, y(0) - y(one.perSecond))}
          fill={ENDED}
        />
      ))}
    </>
  );
}

interface JobsProperties extends Drawing {
  samples: readonly Sample[];
  formatX: (at: Date) => string;
}

function Jobs({ x, samples, width, height, formatX }: JobsProperties) {
  const most = Math.max(3, ...samples.map((one) => Math.max(one.ready, one.running)));
  const y = scaleTo(most, height);
  const at = (one: Sample) => x(one.at);
  return (
    <>
      <Axes {...{ x, y, width, height, formatX }} ticks={3} formatY={short} />
      <AreaClosed
        data={[...samples]}
        x={at}
        y={(one) => y(one.ready)}
        yScale={y}
        curve={curveMonotoneX}
        fill={READY}
        opacity={0.18}
      />
      <LinePath
        data={[...samples]}
        x={at}
        y={(one) => y(one.ready)}
        curve={curveMonotoneX}
        stroke={READY}
        strokeWidth={2}
      />
      <LinePath
        data={[...samples]}
        x={at}
        y={(one) => y(one.running)}
        curve={curveMonotoneX}
        stroke={RUNNING}
        strokeWidth={2}
      />
    </>
  );
}
