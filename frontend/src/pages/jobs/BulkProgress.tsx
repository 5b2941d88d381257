/**
 * How far bulk operations are, whoever began them, with the way to stop and to resume each: those
 * that are under way or stopped half-way, and the one that was begun here until it is dismissed.
 */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Refused, saying } from "../../api/client";
import { type BulkOperation, bulksQuery, resumeBulk, stopBulk } from "../../api/page";
import { useNow } from "../../app/clock";
import { inWords } from "../../lib/filter";
import { number } from "../../lib/format";
import { useLive } from "../../live/LiveContext";
import { notify } from "../../ui/Notices";
import { Badge } from "../../ui/parts";

const STEP_MS = 1_000;
/** Between looks for operations that somebody else has begun. */
const LOOK_MS = 15_000;
/** One that was left half-way for longer is looked for in the admin. */
const LEFT_MS = 24 * 3_600_000;

const BADGE: Record<BulkOperation["state"], string> = {
  running: "running",
  stopped: "paused",
  failed: "failed",
  finished: "succeeded",
};

interface Properties {
  /** The operation that was begun in this tab. */
  own: string | null;
  onDone: () => void;
}

export function BulkProgress({ own, onDone }: Properties) {
  const { mode } = useLive();
  const now = useNow();
  const { data } = useQuery({
    ...bulksQuery,
    refetchInterval: ({ state }) => {
      if (mode === "paused" || state.error instanceof Refused) return false;
      const all = state.data?.results ?? [];
      const isMoving = all.some((one) => one.state === "running");
      const isAwaited = own !== null && !all.some((one) => one.id === own);
      return isMoving || isAwaited ? STEP_MS : LOOK_MS;
    },
    retry: false,
  });
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set());
  const shown = (data?.results ?? []).filter(
    (one) => !dismissed.has(one.id) && (one.id === own || isUnderWay(one, now)),
  );
  const ownState = data?.results.find((one) => one.id === own)?.state;
  useTold(ownState === "finished" || ownState === "failed" ? own : null, onDone);
  return shown.map((one) => (
    <Operation
      key={one.id}
      operation={one}
      onDismiss={() => setDismissed((before) => new Set([...before, one.id]))}
    />
  ));
}

function isUnderWay({ state, stepped_at }: BulkOperation, now: number): boolean {
  if (state === "finished") return false;
  return state === "running" || now - Date.parse(stepped_at) < LEFT_MS;
}

/** Say once of an operation that it has ended. */
function useTold(ended: string | null, onDone: () => void): void {
  const told = useRef<string | null>(null);
  useEffect(() => {
    if (ended === null || told.current === ended) return;
    told.current = ended;
    onDone();
  }, [ended, onDone]);
}

interface OperationProperties {
  operation: BulkOperation;
  onDismiss: () => void;
}

function Operation({ operation, onDismiss }: OperationProperties) {
  const { id, verb, state, filter, total, seen, counts, error, allowed_actions } = operation;
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: (what: "stop" | "resume") => (what === "stop" ? stopBulk(id) : resumeBulk(id)),
    onError: (refusal) => notify(saying(refusal), "refused"),
    onSettled: () => queries.invalidateQueries({ queryKey: bulksQuery.queryKey }),
  });
  const what = Object.entries(counts).map(([name, n]) => `${number(n)} ${name}`);
  return (
    <div className={`bulk-progress is-${state}`}>
      <div className="bulk-what" role="status">
        <Badge name={BADGE[state]} label={state} /> <b>{verb.replace("_", " ")}</b>{" "}
        {filter === "" ? "of selected jobs" : `of jobs that are ${inWords(filter)}`}, by{" "}
        {operation.actor}
        {what.length > 0 && <span className="quiet">: {what.join(", ")}</span>}
        {error !== "" && <span className="field-error">. {error}</span>}
      </div>
      <progress
        aria-label={`Jobs that operation ${id} has dealt with`}
        max={Math.max(1, total)}
        value={state === "finished" ? Math.max(1, total) : Math.min(seen, total)}
      />
      <span className="quiet">
        {number(seen)} of {number(total)}
        {operation.total_is_capped && "+"} jobs
      </span>
      {allowed_actions.map((action) => (
        <button
          type="button"
          className="small"
          key={action}
          disabled={turn.isPending}
          onClick={() => turn.mutate(action)}
        >
          {action === "stop" ? "Stop" : "Resume"}
        </button>
      ))}
      {state !== "running" && (
        <button type="button" className="small" onClick={onDismiss}>
          Dismiss
        </button>
      )}
    </div>
  );
}
