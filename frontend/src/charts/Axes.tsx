/** Lines and labels around a drawing. */

import { AxisBottom, AxisLeft } from "@visx/axis";
import { GridRows } from "@visx/grid";
import type { scaleLinear, scaleTime } from "@visx/scale";

export const MARGIN = { top: 6, right: 26, bottom: 22, left: 54 } as const;

const label = { className: "tick", fontSize: 11, fill: "var(--body-quiet-color)" } as const;

interface Properties {
  x: ReturnType<typeof scaleTime<number>>;
  // biome-ignore lint/suspicious/noExplicitAny: linear or logarithmic; the axis does not mind
  y: ReturnType<typeof scaleLinear<number>> | any;
  width: number;
  height: number;
  formatX: (at: Date) => string;
  formatY: (value: number) => string;
  ticksY?: number[];
  /** About how many there are on the left, if ticksY does not name them. */
  ticks?: number;
}

export function Axes({ x, y, width, height, formatX, formatY, ticksY, ticks = 4 }: Properties) {
  const many = Math.max(2, Math.min(6, Math.floor(width / 110)));
  return (
    <>
      <GridRows
        scale={y}
        left={MARGIN.left}
        width={width - MARGIN.left - MARGIN.right}
        numTicks={ticks}
        tickValues={ticksY}
        stroke="var(--hairline-color)"
      />
      <AxisBottom
        scale={x}
        top={height - MARGIN.bottom}
        numTicks={many}
        tickFormat={(at) => formatX(at as Date)}
        stroke="var(--border-color)"
        tickStroke="var(--border-color)"
        tickLength={4}
        tickLabelProps={{ ...label, textAnchor: "middle" }}
      />
      <AxisLeft
        scale={y}
        left={MARGIN.left}
        numTicks={ticks}
        tickValues={ticksY}
        tickFormat={(value) => formatY(Number(value))}
        hideAxisLine
        hideTicks
        tickLabelProps={{ ...label, textAnchor: "end", dx: -2, dy: 4 }}
      />
    </>
  );
}
