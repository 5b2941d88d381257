/** The list: one row a job; j and k walk it, x selects, Enter opens. On a phone rows become cards. */

import { Link, useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import type { JobSummary } from "../../api/jobs";
import { useShortcuts } from "../../app/shortcuts";
import { quoted } from "../../lib/filter";
import { lastName, plural } from "../../lib/format";
import { Badge, Time } from "../../ui/parts";

const ENDED: ReadonlySet<string> = new Set(["succeeded", "dead", "cancelled"]);
const hasEnded = (row: JobSummary) => ENDED.has(row.state);

interface Properties {
  rows: JobSummary[];
  gone: ReadonlySet<string>;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onFilter: (q: string) => void;
}

export function JobTable({ rows, gone, selected, onSelect, onFilter }: Properties) {
  const table = useRef<HTMLTableElement>(null);
  const navigate = useNavigate();
  const toggle = (id: string) => {
    const now = new Set(selected);
    if (!now.delete(id)) now.add(id);
    onSelect(now);
  };
  const links = () => [...(table.current?.querySelectorAll<HTMLAnchorElement>("a.row-link") ?? [])];
  const current = () => links().indexOf(document.activeElement as HTMLAnchorElement);
  const walk = (step: number) => {
    const all = links();
    all[Math.max(0, Math.min(all.length - 1, current() + step))]?.focus();
  };
  useShortcuts({
    j: () => walk(1),
    k: () => walk(-1),
    x: () => {
      const row = rows[current()];
      if (row !== undefined) toggle(row.id);
    },
    o: () => {
      const row = rows[current()];
      if (row !== undefined) void navigate({ to: "/jobs/$jobId", params: { jobId: row.id } });
    },
  });
  const all = rows.length > 0 && rows.every((row) => selected.has(row.id));

  return (
    <div className="table-wrap">
      <table className="jobs cards" ref={table}>
        <thead>
          <tr>
            <th className="check">
              <input
                type="checkbox"
                aria-label="Select all on this page"
                checked={all}
                onChange={() => onSelect(new Set(all ? [] : rows.map((row) => row.id)))}
              />
            </th>
            <th>Task</th>
            <th>State</th>
            <th>Queue</th>
            <th className="number">Failures</th>
            <th>Current error</th>
            <th>When</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={row.id}
              className={gone.has(row.id) ? "is-gone" : undefined}
              aria-selected={selected.has(row.id) || undefined}
            >
              <td className="check">
                <input
                  type="checkbox"
                  aria-label={`Select ${lastName(row.task)} ${row.id}`}
                  checked={selected.has(row.id)}
                  onChange={() => toggle(row.id)}
                />
              </td>
              <td data-label="Task" className="row-title">
                <Link
                  className="row-link"
                  to="/jobs/$jobId"
                  params={{ jobId: row.id }}
                  title={row.task}
                >
                  {lastName(row.task)}
                </Link>
                <span className="row-tags">
                  {row.tags.map((tag) => (
                    <button
                      type="button"
                      className="tag"
                      key={tag}
                      onClick={() => onFilter(`tag:${quoted(tag)} state:any`)}
                    >
                      {tag}
                    </button>
                  ))}
                </span>
                <span className="row-id">{row.id}</span>
              </td>
              <td data-label="State">
                <Badge name={row.state} />
                {row.reason !== "" && <span className="row-note">{row.reason}</span>}
              </td>
              <td data-label="Queue">
                {row.queue_name}
                {row.priority !== 0 && (
                  <span className="row-note">
                    priority {row.priority > 0 ? "+" : ""}
                    {row.priority}
                  </span>
                )}
              </td>
              <td data-label="Failures" className="number">
                {row.failures}
                {row.max_attempts !== null && <span className="quiet"> / {row.max_attempts}</span>}
                {row.attempts > 1 && (
                  <span className="row-note">{plural(row.attempts, "attempt")}</span>
                )}
              </td>
              <td
                data-label="Current error"
                className={row.error_class === "" ? "row-error is-empty" : "row-error"}
              >
                {row.error_class === "" ? (
                  <span className="quiet">–</span>
                ) : (
                  <span title={row.error_message}>
                    <b>{lastName(row.error_class)}</b> {row.error_message}
                  </span>
                )}
              </td>
              <td data-label="When">
                <When row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The time that matters in its state, and what it is. */
function When({ row }: { row: JobSummary }) {
  if (row.finished_at || hasEnded(row)) return <TimeOf what="ended" at={row.finished_at} />;
  if (row.state === "running") return <TimeOf what="started" at={row.started_at} />;
  return <TimeOf what="due" at={row.run_at} />;
}

/** Of a state that was just pushed the time is not read yet: it is now. */
function TimeOf({ what, at }: { what: string; at: string | null }) {
  return (
    <span className="row-time">
      <span className="quiet">{what}</span> {at === null ? "now" : <Time at={at} />}
    </span>
  );
}
