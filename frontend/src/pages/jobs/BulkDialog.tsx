/** Says in words and numbers what a bulk operation would do, before it does it. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type Preview, previewBulk, startBulk } from "../../api/page";
import { inWords } from "../../lib/filter";
import { lastName, number, plural } from "../../lib/format";
import { DESTRUCTIVE } from "../../lib/words";
import { Dialog } from "../../ui/Dialog";
import { Loaded, Trouble } from "../../ui/parts";

export type BulkVerb = "requeue" | "run_now" | "cancel" | "discard" | "move" | "reprioritize";
export type BulkTarget = { ids: string[] } | { filter: string };

const TITLES: Record<BulkVerb, string> = {
  requeue: "Requeue jobs",
  run_now: "Run jobs now",
  cancel: "Cancel jobs",
  discard: "Discard dead letters",
  move: "Move jobs to another queue",
  reprioritize: "Give jobs another priority",
};

const WAITING = ["scheduled", "ready", "blocked", "retrying"];

/** States that a verb is about, as the server has them; jobs in others are skipped. */
export const STATES_OF: Record<BulkVerb, readonly string[]> = {
  requeue: ["dead", "cancelled"],
  run_now: WAITING,
  cancel: [...WAITING, "running"],
  discard: ["dead"],
  move: WAITING,
  reprioritize: WAITING,
};

const ABOUT: Record<BulkVerb, string> = {
  requeue: "dead or cancelled",
  run_now: "waiting",
  cancel: "waiting or running",
  discard: "dead",
  move: "waiting",
  reprioritize: "waiting",
};

interface Properties {
  verb: BulkVerb;
  past: string;
  target: BulkTarget;
  onClose: () => void;
  onStarted: (id: string) => void;
}

export function BulkDialog({ verb, past, target, onClose, onStarted }: Properties) {
  const [reason, setReason] = useState("");
  const [spread, setSpread] = useState("0");
  const [priority, setPriority] = useState("10");
  const [queue, setQueue] = useState("");
  const dismiss = useRef<HTMLButtonElement>(null);
  useEffect(() => dismiss.current?.focus(), []);

  const request = { verb, ...target };
  const preview = useQuery({
    queryKey: ["bulk-preview", request],
    queryFn: () => previewBulk(request),
    staleTime: 0,
    gcTime: 0,
  });
  const start = useMutation({
    mutationFn: () => startBulk({ ...request, ...options() }),
    onSuccess: (operation) => onStarted(String(operation.id)),
  });
  const isMissing = verb === "move" && queue.trim() === "";

  return (
    <Dialog title={TITLES[verb]} onClose={onClose}>
      <p>
        {"ids" in target ? (
          <>The {plural(target.ids.length, "selected job")}</>
        ) : (
          <>
            All jobs that are <b>{inWords(target.filter)}</b>
          </>
        )}
        , as far as they are {ABOUT[verb]}.
      </p>
      <Loaded query={preview}>{(found) => <DryRun found={found} past={past} />}</Loaded>
      <form
        id="bulk-options"
        className="fields"
        onSubmit={(event) => {
          event.preventDefault();
          start.mutate();
        }}
      >
        {verb === "requeue" && (
          <label>
            Spread over
            <select value={spread} onChange={(event) => setSpread(event.target.value)}>
              <option value="0">nothing: all at once</option>
              <option value="60">1 minute</option>
              <option value="600">10 minutes</option>
              <option value="3600">1 hour</option>
              <option value="21600">6 hours</option>
            </select>
          </label>
        )}
        {verb === "move" && (
          <label>
            Queue
            <input value={queue} onChange={(event) => setQueue(event.target.value)} required />
          </label>
        )}
        {verb === "reprioritize" && (
          <label>
            Priority (−100 to 100, larger is sooner)
            <input
              type="number"
              min={-100}
              max={100}
              required
              value={priority}
              onChange={(event) => setPriority(event.target.value)}
            />
          </label>
        )}
        {DESTRUCTIVE.has(verb) && (
          <label>
            Reason
            <input
              value={reason}
              maxLength={64}
              onChange={(event) => setReason(event.target.value)}
            />
          </label>
        )}
      </form>
      {start.error && <Trouble error={start.error} />}
      <div className="dialog-buttons">
        <button type="button" ref={dismiss} onClick={onClose}>
          {verb === "cancel" ? "Leave them" : "Cancel"}
        </button>
        <button
          type="submit"
          form="bulk-options"
          className={DESTRUCTIVE.has(verb) ? "danger" : "primary"}
          disabled={!preview.data?.count || start.isPending || isMissing}
        >
          {TITLES[verb].split(" ")[0]}{" "}
          {preview.data === undefined ? "…" : plural(preview.data.count, "job")}
        </button>
      </div>
    </Dialog>
  );

  function options() {
    return {
      ...(verb === "requeue" && spread !== "0" ? { spread: Number(spread) } : {}),
      ...(verb === "move" ? { queue_name: queue.trim() } : {}),
      ...(verb === "reprioritize" ? { priority: Number(priority) } : {}),
      ...(DESTRUCTIVE.has(verb) && reason !== "" ? { reason } : {}),
    };
  }
}

function DryRun({ found, past }: { found: Preview; past: string }) {
  if (found.count === 0) {
    return (
      <p className="dry-run">None of them is in a state that allows it: nothing would change.</p>
    );
  }
  return (
    <div className="dry-run">
      <p>
        <b>
          {found.count_is_capped && "more than "}
          {plural(found.count, "job")}
        </b>{" "}
        would be {past}:
      </p>
      <ul>
        <Line what="states" counts={found.by_state} />
        <Line what="queues" counts={found.by_queue} />
        <Line what="tasks" counts={found.by_task} />
      </ul>
    </div>
  );
}

function Line({ what, counts }: { what: string; counts: Record<string, number> }) {
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a);
  const shown = sorted.slice(0, 5).map(([name, n]) => `${lastName(name)} ${number(n)}`);
  if (sorted.length > 5) shown.push(`${sorted.length - 5} more ${what}`);
  return <li>{shown.join(" · ")}</li>;
}
