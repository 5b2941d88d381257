/** How many ended in each step, stacked by line. */

import { scaleLinear, scaleTime } from "@visx/scale";
import { BarRounded } from "@visx/shape";
import { useZone } from "../app/preferences";
import { clock, number, short } from "../lib/format";
import { wordOf } from "../lib/words";
import { Axes, MARGIN } from "./Axes";
import { ChartFrame } from "./ChartFrame";
import { colorOf } from "./colors";

export interface Line {
  name: string;
  counts: readonly number[];
  /** Where the name that is shown differs from the one that has a color. */
  label?: string;
}

interface Properties {
  title: string;
  starts: readonly string[];
  stepSeconds: number;
  lines: readonly Line[];
}

export function StackedBars({ title, starts, stepSeconds, lines }: Properties) {
  const zone = useZone();
  const times = starts.map((start) => Date.parse(start));
  const totals = times.map((_, at) => lines.reduce((sum, line) => sum + (line.counts[at] ?? 0), 0));
  const most = Math.max(4, ...totals);
  const day = stepSeconds >= 3_600;
  const formatX = (at: Date) => (day ? dayAndHour(at, zone) : clock(at, zone));
  const sums = lines.map((line) => line.counts.reduce((sum, count) => sum + count, 0));
  const labels = lines.map((line) => line.label ?? line.name);

  return (
    <ChartFrame
      title={title}
      height={330}
      summary={labels.map((label, at) => `${label}: ${number(sums[at] ?? 0)}`).join(", ")}
      legend={lines.map((line, at) => ({
        name: labels[at] ?? "",
        color: colorOf(line.name, at),
        value: short(sums[at] ?? 0),
      }))}
      columns={["From", ...labels]}
      rows={times.map((time, at) => [
        formatX(new Date(time)),
        ...lines.map((line) => number(line.counts[at] ?? 0)),
      ])}
      draw={(width, height) => {
        const first = times[0] ?? 0;
        const until = (times.at(-1) ?? 0) + stepSeconds * 1_000;
        const x = scaleTime<number>({
          domain: [first, until],
          range: [MARGIN.left, width - MARGIN.right],
        });
        const y = scaleLinear<number>({
          domain: [0, most],
          range: [height - MARGIN.bottom, MARGIN.top],
          nice: 4,
        });
        const step = x(first + stepSeconds * 1_000) - x(first);
        const bar = Math.max(1, step > 4 ? step - 1.5 : step);
        return (
          <>
            <Axes x={x} y={y} {...{ width, height, formatX }} formatY={short} />
            {times.map((time, at) => {
              let from = 0;
              return lines.map((line, index) => {
                const count = line.counts[at] ?? 0;
                if (count === 0) return null;
                const top = y(from + count);
                const bottom = y(from);
                from += count;
                return (
                  <BarRounded
                    key={`${time} ${line.name}`}
                    x={x(time)}
                    y={top}
                    width={bar}
                    height={Math.max(1, bottom - top)}
                    radius={step > 8 ? 1.5 : 0}
                    top
                    fill={colorOf(line.name, index)}
                  >
                    {({ path }) => (
                      <path d={path} fill={colorOf(line.name, index)}>
                        <title>
                          {`${formatX(new Date(time))}: ${number(count)} ${wordOf(labels[index] ?? "")}`}
                        </title>
                      </path>
                    )}
                  </BarRounded>
                );
              });
            })}
          </>
        );
      }}
    />
  );
}

function dayAndHour(at: Date, zone: "utc" | "local"): string {
  return new Intl.DateTimeFormat("en-GB", {
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: zone === "utc" ? "UTC" : undefined,
  }).format(at);
}
