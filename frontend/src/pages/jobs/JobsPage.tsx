import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import type { JobSummary } from "../../api/jobs";
import { useShortcuts } from "../../app/shortcuts";
import { inWords, termOf, tokens } from "../../lib/filter";
import { plural } from "../../lib/format";
import { useLive } from "../../live/LiveContext";
import { Empty, Trouble } from "../../ui/parts";
import { BulkBar } from "./BulkBar";
import { FilterField } from "./FilterField";
import { JobTable } from "./JobTable";
import { Pager } from "./Pager";
import { StateTabs } from "./StateTabs";
import { useJobList } from "./useJobList";

const hasEnded = (job: JobSummary) => job.state === "succeeded" || job.state === "cancelled";

const route = getRouteApi("/jobs");

export function JobsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const asked = useMemo(
    () => ({ q: search.q ?? "", older: search.older, newer: search.newer }),
    [search.q, search.older, search.newer],
  );
  const list = useJobList(asked);
  const [selected, setSelected] = useSelection(list.rows, asked.q);
  const setFilter = (q: string) => navigate({ search: { q: q.trim() || undefined } });

  return (
    <>
      <h1>Jobs</h1>
      <StateTabs q={asked.q} rows={list.rows} onChange={setFilter} />
      <FilterField q={asked.q} error={list.query.error} onChange={setFilter} />
      <BulkBar
        q={asked.q}
        selected={selected}
        onClear={() => setSelected(new Set())}
        onDone={list.showNew}
        rows={list.rows}
      />
      <div className="list-news">
        {list.fresh > 0 && (
          <button type="button" className="news" onClick={list.showNew}>
            {plural(list.fresh, "new job")}: show {list.fresh === 1 ? "it" : "them"}
          </button>
        )}
        {termOf(asked.q, "state") === null && list.rows.some(hasEnded) && (
          <span className="quiet">
            Jobs that end stay in this list
            {list.fresh > 0 ? " until then." : ". "}
            {list.fresh === 0 && (
              <button type="button" className="small" onClick={list.showNew}>
                Take them out
              </button>
            )}
          </span>
        )}
      </div>
      {list.query.error && list.query.data === undefined ? (
        <Trouble error={list.query.error} />
      ) : list.query.data === undefined ? (
        <p className="quiet loading">Loading …</p>
      ) : list.rows.length === 0 ? (
        <NoJobs q={asked.q} isPartial={list.query.data.is_partial} />
      ) : (
        <JobTable
          rows={list.rows}
          gone={list.gone}
          selected={selected}
          onSelect={setSelected}
          onFilter={setFilter}
        />
      )}
      <Pager page={list.query.data} asked={asked} />
    </>
  );
}

/** What is selected; it freezes the list, is given up by Esc, and forgets what is not shown. */
function useSelection(rows: JobSummary[], q: string) {
  const { freeze } = useLive();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const hasSelection = selected.size > 0;
  useEffect(() => freeze(hasSelection), [freeze, hasSelection]);
  useEffect(() => () => freeze(false), [freeze]);
  const clear = () => setSelected(new Set());
  useShortcuts({ Escape: clear });

  const shown = useRef(q);
  useEffect(() => {
    if (shown.current !== q) setSelected(new Set());
    shown.current = q;
  }, [q]);
  const ids = useMemo(() => new Set(rows.map((row) => row.id)), [rows]);
  const visible = useMemo(
    () => new Set([...selected].filter((id) => ids.has(id))),
    [selected, ids],
  );
  return [visible, setSelected] as const;
}

function NoJobs({ q, isPartial }: { q: string; isPartial: boolean }) {
  if (isPartial) {
    return (
      <Empty title="None so far">
        <p>The search has stopped before the end of a long history. “Older” goes on from there.</p>
      </Empty>
    );
  }
  if (tokens(q).length === 0) {
    return (
      <Empty title="No job is waiting, running or dead">
        <p>
          That is how it should be. Jobs that have ended are in the tabs above; a new one comes from{" "}
          <code>task.enqueue(…)</code> in your code, or from <Link to="/submit">Submit a job</Link>.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={`There is no job that is ${inWords(q)}`}>
      <p>
        A filter that names no state looks at jobs that are live or dead: add <code>state:any</code>{" "}
        to look at those that have ended, too.
      </p>
    </Empty>
  );
}
