/** What every chart has: a title, a legend in words, a drawing that fits, and the same as a table. */

import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { wordOf } from "../lib/words";

export interface Key {
  name: string;
  color: string;
  value?: string;
}

interface Properties {
  title: string;
  /** What the drawing says, for whoever does not see it. */
  summary: string;
  legend: readonly Key[];
  height?: number;
  draw: (width: number, height: number) => ReactNode;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

export function ChartFrame(properties: Properties) {
  const { title, summary, legend, height = 170, draw, columns, rows } = properties;
  const [box, width] = useWidth();
  const id = useId();
  return (
    <figure className="chart">
      <figcaption id={id}>{title}</figcaption>
      <ul className="legend">
        {legend.map((key) => (
          <li key={key.name}>
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={key.color} />
            </svg>
            {wordOf(key.name)}
            {key.value !== undefined && <b>{key.value}</b>}
          </li>
        ))}
      </ul>
      <div ref={box} className="chart-box" style={{ height }}>
        {width > 0 && (
          <svg width={width} height={height} role="img" aria-labelledby={id}>
            <desc>{summary}</desc>
            {draw(width, height)}
          </svg>
        )}
      </div>
      <details className="twin">
        <summary>As a table</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys */}
        <section className="twin-table" tabIndex={0} aria-label={`${title}, as a table`}>
          <table>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col">
                    {wordOf(column)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, at) => (
                    <td key={columns[at]}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </details>
    </figure>
  );
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (box.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, Math.floor(width)] as const;
}
