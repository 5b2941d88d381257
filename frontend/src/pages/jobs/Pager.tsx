/** Older and newer, by the ids at the edges: nothing is counted, nothing is shown twice. */

import { Link } from "@tanstack/react-router";
import type { JobsAsked } from "../../api/jobs";

interface Page {
  next: string | null;
  previous: string | null;
  is_partial: boolean;
}

const edge = (address: string | null, name: string): string | undefined =>
  address === null
    ? undefined
    : (new URLSearchParams(address.split("?")[1]).get(name) ?? undefined);

export function Pager({ page, asked }: { page: Page | undefined; asked: JobsAsked }) {
  const older = edge(page?.next ?? null, "older_than");
  const newer = edge(page?.previous ?? null, "newer_than");
  const q = asked.q || undefined;
  const isFirst = asked.older === undefined && asked.newer === undefined;
  if (older === undefined && isFirst) return null;
  return (
    <nav className="pager" aria-label="Pages of the list">
      {!isFirst && (
        <Link className="button" to="/jobs" search={{ q }}>
          Newest
        </Link>
      )}
      {newer !== undefined && !isFirst && (
        <Link className="button" to="/jobs" search={{ q, newer }}>
          Newer
        </Link>
      )}
      {older !== undefined && (
        <Link className="button" to="/jobs" search={{ q, older }}>
          Older
        </Link>
      )}
      {page?.is_partial && <span className="quiet">The search stopped here; it can go on.</span>}
    </nav>
  );
}
