/** A course without axes; the numbers stand beside it. */

import { scaleLinear } from "@visx/scale";
import { Bar } from "@visx/shape";

interface Properties {
  counts: readonly number[];
  label: string;
  width?: number;
  height?: number;
}

export function Sparkline({ counts, label, width = 120, height = 28 }: Properties) {
  const y = scaleLinear<number>({ domain: [0, Math.max(1, ...counts)], range: [0, height] });
  const step = width / Math.max(1, counts.length);
  return (
    <svg className="spark" width={width} height={height} role="img" aria-label={label}>
      {counts.map((count, at) => (
        <Bar
          key={at}
          x={at * step}
          y={height - (count === 0 ? 1 : Math.max(2, y(count)))}
          width={Math.max(0.8, step - 0.8)}
          height={count === 0 ? 1 : Math.max(2, y(count))}
          fill={count === 0 ? "var(--border-color)" : "var(--jq-chart-failed)"}
        />
      ))}
    </svg>
  );
}
