/**
 * What can be done with many jobs: those that are selected, or all that the filter finds.
 *
 * It always begins with a dry run, whose counts the dialog shows; the operation itself goes on in
 * the background, whatever becomes of this tab.
 */

import { useState } from "react";
import { DEFAULT_FILTER } from "../../api/jobs";
import { plural } from "../../lib/format";
import { PAST } from "../../lib/words";
import { BulkDialog, type BulkVerb } from "./BulkDialog";
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
  hasRows: boolean;
  onClear: () => void;
  onDone: () => void;
}

export function BulkBar({ q, selected, hasRows, onClear, onDone }: Properties) {
  const [verb, setVerb] = useState<BulkVerb | null>(null);
  const [operation, setOperation] = useState<string | null>(null);
  const isSelection = selected.size > 0;
  return (
    <div className={isSelection ? "bulk is-selection" : "bulk"}>
      {(isSelection || hasRows) && (
        <fieldset className="bulk-verbs">
          <legend>
            {isSelection ? `${plural(selected.size, "job")} selected` : "All that the filter finds"}
          </legend>
          {VERBS.map(([name, label]) => (
            <button type="button" className="small" key={name} onClick={() => setVerb(name)}>
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
      {operation !== null && (
        <BulkProgress id={operation} onClose={() => setOperation(null)} onDone={onDone} />
      )}
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
          }}
        />
      )}
    </div>
  );
}
