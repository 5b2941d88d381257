/**
 * A page of jobs that stays true on the screen: rows are patched where they stand, new ones are
 * counted beside the list, and nothing moves until the viewer asks for it.
 */

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import {
  DEFAULT_FILTER,
  type JobSummary,
  type JobsAsked,
  jobsQuery,
  PAGE_SIZE,
  readFirstPage,
  readJobs,
} from "../../api/jobs";
import { useInterval, useLive, useTopic } from "../../live/LiveContext";
import type { Change } from "../../live/protocol";
import { patch, refreshed } from "../../live/rows";

/** Rows that have changed are read together, not one by one. */
const READ_MS = 400;

export function useJobList(asked: JobsAsked) {
  const queries = useQueryClient();
  const { mode } = useLive();
  const options = jobsQuery(asked);
  const query = useQuery({ ...options, placeholderData: keepPreviousData });
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const rows = query.data?.results ?? [];
  const key = JSON.stringify(options.queryKey);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another list begins with nothing new
  useEffect(() => {
    setFresh(new Set());
    setGone(new Set());
  }, [key]);

  const setRows = useCallback(
    (change: (rows: JobSummary[]) => JobSummary[]) => {
      queries.setQueryData(jobsQuery(asked).queryKey, (page) =>
        page === undefined ? page : { ...page, results: change(page.results) },
      );
    },
    [queries, asked],
  );

  const reread = useRereading(setRows);

  const isFirst = asked.older === undefined && asked.newer === undefined;
  useTopic(
    query.isPlaceholderData || query.data === undefined ? null : "jobs",
    {
      params: () => ({
        filter: asked.q || DEFAULT_FILTER,
        watch: Object.fromEntries(rows.map((row) => [row.id, row.version])),
        size: isFirst ? PAGE_SIZE : null,
      }),
      onChanges: (changes) => {
        const patched = patch(rows, changes as Change[]);
        if (patched.stale.length > 0) {
          setRows((now) => patch(now, changes as Change[]).rows);
          reread(patched.stale);
        }
        if (patched.fresh.length > 0) setFresh((now) => new Set([...now, ...patched.fresh]));
        if (patched.gone.length > 0) setGone((now) => new Set([...now, ...patched.gone]));
      },
      onResync: () => reread(rows.map((row) => row.id)),
    },
    `${key} ${rows.map((row) => row.id).join()}`,
  );

  usePolling(() => {
    reread(rows.map((row) => row.id));
    if (isFirst && query.data !== undefined) void countNew();
  });

  /** What a subscription would tell: jobs of the first page that are not shown. */
  async function countNew(): Promise<void> {
    const first = await readFirstPage(asked.q).catch(() => null); // the status line says so
    const oldest = rows.length < PAGE_SIZE ? "" : (rows.at(-1)?.id ?? "");
    const shown = new Set(rows.map((row) => row.id));
    const news = (first?.results ?? []).map((row) => row.id);
    const unseen = news.filter((id) => !shown.has(id) && id > oldest);
    if (unseen.length > 0) setFresh((before) => new Set([...before, ...unseen]));
  }

  const showNew = useCallback(() => {
    setFresh(new Set());
    setGone(new Set());
    void queries.invalidateQueries({ queryKey: ["jobs"] });
  }, [queries]);

  return { query, rows, fresh: fresh.size, gone, showNew, mode };
}

/** Without a push, look by the interval. */
function usePolling(look: () => void): void {
  const interval = useInterval();
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (interval === false) return;
    const timer = window.setInterval(() => latest.current(), interval);
    return () => window.clearInterval(timer);
  }, [interval]);
}

function useRereading(
  setRows: (change: (rows: JobSummary[]) => JobSummary[]) => void,
): (ids: string[]) => void {
  const waiting = useRef(new Set<string>());
  const timer = useRef<number | null>(null);
  const put = useRef(setRows);
  put.current = setRows;
  useEffect(
    () => () => {
      if (timer.current !== null) window.clearTimeout(timer.current);
    },
    [],
  );
  return useCallback((ids: string[]) => {
    for (const id of ids) waiting.current.add(id);
    if (waiting.current.size === 0 || timer.current !== null) return;
    timer.current = window.setTimeout(async () => {
      timer.current = null;
      const asked = [...waiting.current];
      waiting.current.clear();
      try {
        const read = await readJobs(asked);
        put.current((rows) => refreshed(rows, read));
      } catch {
        // The status line says that the server does not answer; the next change asks again.
      }
    }, READ_MS);
  }, []);
}
