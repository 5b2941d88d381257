/**
 * What can be done with many jobs: those that are selected, or all that the filter finds.
 *
 * It always begins with a dry run, whose counts the dialog shows; the operation itself goes on in
 * the background, whatever becomes of this tab.
 */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { DEFAULT_FILTER, type JobSummary } from "../../api/jobs";
import { bulksQuery } from "../../api/page";
import { STATES, termOf, tokens } from "../../lib/filter";
import { plural } from "../../lib/format";
import { DESTRUCTIVE, PAST } from "../../lib/words";
import { BulkDialog, type BulkVerb, STATES_OF } from "./BulkDialog";
import { BulkProgress } from "./BulkProgress";

const VERBS: [BulkVerb, string][] = [
  ["requeue", "Requeue"],
  ["run_now", "Run now"],
  ["cancel", "Cancel"],
  ["discard", "Discard"],
  ["move", "Move"],
  ["reprioritize", "Priority"],
];

interface Properties {
  q: string;
  selected: ReadonlySet<string>;
  rows: readonly JobSummary[];
  onClear: () => void;
  onDone: () => void;
}

export function BulkBar({ q, selected, rows, onClear, onDone }: Properties) {
  const queries = useQueryClient();
  const [verb, setVerb] = useState<BulkVerb | null>(null);
  const [operation, setOperation] = useState<string | null>(null);
  const isSelection = selected.size > 0;
  const states = isSelection
    ? rows.filter((row) => selected.has(row.id)).map((row) => row.state)
    : (termOf(q, "state") ?? "any").split(",");
  // Only what can change any of them; a word such as "live" may stand for all states.
  const isOpen = states.some((state) => !(STATES as readonly string[]).includes(state));
  // Without a filter "all" would be every job that is live or dead: nobody is offered to end those.
  const isFiltered = tokens(q).length > 0;
  const verbs = VERBS.filter(
    ([name]) => isOpen || states.some((state) => STATES_OF[name].includes(state)),
  );
  return (
    <div className={isSelection ? "bulk is-selection" : "bulk"}>
      {(isSelection || (isFiltered && rows.length > 0 && verbs.length > 0)) && (
        <fieldset className="bulk-verbs">
          <legend>
            {isSelection ? `${plural(selected.size, "job")} selected` : "All that the filter finds"}
          </legend>
          {verbs.map(([name, label]) => (
            <button
              type="button"
              className={DESTRUCTIVE.has(name) ? "small danger-quiet" : "small"}
              key={name}
              onClick={() => setVerb(name)}
            >
              {label} …
            </button>
          ))}
          {isSelection && (
            <button type="button" className="small quiet-button" onClick={onClear}>
              Clear <kbd>Esc</kbd>
            </button>
          )}
        </fieldset>
      )}
      <BulkProgress own={operation} onDone={onDone} />
      {verb !== null && (
        <BulkDialog
          verb={verb}
          past={PAST[verb] ?? verb}
          target={isSelection ? { ids: [...selected] } : { filter: q || DEFAULT_FILTER }}
          onClose={() => setVerb(null)}
          onStarted={(id) => {
            setVerb(null);
            onClear();
            setOperation(id);
            void queries.invalidateQueries({ queryKey: bulksQuery.queryKey });
          }}
        />
      )}
    </div>
  );
}
