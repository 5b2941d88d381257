/** Percentiles by step on a logarithmic scale: a millisecond and a minute both have their place. */

import { curveMonotoneX } from "@visx/curve";
import { scaleLog, scaleTime } from "@visx/scale";
import { LinePath } from "@visx/shape";
import type { Spread } from "../api/page";
import { useZone } from "../app/preferences";
import { clock, duration, percentile, tick } from "../lib/format";
import { Axes, MARGIN } from "./Axes";
import { ChartFrame } from "./ChartFrame";

/** Percentiles, as people say them: so many took no longer. */
const LINES = [
  ["p50", "half within", "var(--jq-chart-1)"],
  ["p95", "95 % within", "var(--jq-chart-3)"],
  ["p99", "99 % within", "var(--jq-chart-5)"],
] as const;

interface Properties {
  title: string;
  starts: readonly string[];
  spreads: readonly Spread[];
  total: Spread | undefined;
}

export function LatencyChart({ title, starts, spreads, total }: Properties) {
  const zone = useZone();
  const points = starts.map((start, at) => ({ at: Date.parse(start), spread: spreads[at] }));
  const seen = points.filter(({ spread }) => spread !== undefined && spread.count > 0);
  const values = seen.flatMap(({ spread }) => [spread?.p50, spread?.p99]).filter((v) => v != null);
  const low = 10 ** Math.floor(Math.log10(Math.max(0.001, Math.min(...values, 0.01))));
  const high = 10 ** Math.ceil(Math.log10(Math.max(low * 10, ...values)));
  const formatX = (at: Date) => clock(at, zone);

  return (
    <ChartFrame
      title={title}
      height={130}
      summary={LINES.map(([name, words]) => `${words} ${percentile(total, total?.[name])}`).join(
        ", ",
      )}
      legend={LINES.map(([name, words, color]) => ({
        name: words,
        color,
        value: percentile(total, total?.[name]),
      }))}
      columns={["From", ...LINES.map(([, words]) => words)]}
      rows={seen.map(({ at, spread }) => [
        formatX(new Date(at)),
        ...LINES.map(([name]) => duration(spread?.[name])),
      ])}
      draw={(width, height) => {
        const x = scaleTime<number>({
          domain: [points[0]?.at ?? 0, points.at(-1)?.at ?? 1],
          range: [MARGIN.left, width - MARGIN.right],
        });
        const y = scaleLog<number>({
          domain: [low, high],
          range: [height - MARGIN.bottom, MARGIN.top],
        });
        return (
          <>
            <Axes
              x={x}
              y={y}
              {...{ width, height, formatX }}
              formatY={tick}
              ticksY={decades(low, high)}
            />
            {LINES.map(([name, words, color]) => (
              <g key={name}>
                <LinePath
                  data={seen}
                  x={(point) => x(point.at)}
                  y={(point) => y(Math.max(low, point.spread?.[name] ?? low))}
                  curve={curveMonotoneX}
                  stroke={color}
                  strokeWidth={2}
                  fill="none"
                />
                {seen.map((point) => (
                  <circle
                    key={point.at}
                    cx={x(point.at)}
                    cy={y(Math.max(low, point.spread?.[name] ?? low))}
                    r={seen.length > 30 ? 1.5 : 2.5}
                    fill={color}
                  >
                    <title>{`${formatX(new Date(point.at))}: ${words} ${duration(point.spread?.[name])}`}</title>
                  </circle>
                ))}
              </g>
            ))}
          </>
        );
      }}
    />
  );
}

function decades(low: number, high: number): number[] {
  const found: number[] = [];
  for (let at = low; at <= high * 1.001; at *= 10) found.push(at);
  return found.length > 5 ? found.filter((_, index) => index % 2 === 0) : found;
}
