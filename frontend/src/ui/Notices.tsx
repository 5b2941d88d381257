/** What has come of something that the viewer did: said once, kept until it is read. */

import { useSyncExternalStore } from "react";
import { Icon } from "./Icon";

interface Notice {
  id: number;
  text: string;
  kind: "done" | "refused";
}

const SHOWN_MS = 8_000;
let notices: readonly Notice[] = [];
let next = 1;
const watchers = new Set<() => void>();

function become(now: readonly Notice[]): void {
  notices = now;
  for (const watcher of watchers) watcher();
}

export function notify(text: string, kind: Notice["kind"] = "done"): void {
  const id = next++;
  become([...notices.slice(-3), { id, text, kind }]);
  // A refusal stays: it says what to do.
  if (kind === "done") window.setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  become(notices.filter((notice) => notice.id !== id));
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function Notices() {
  const shown = useSyncExternalStore(watch, () => notices);
  return (
    <div className="notices" role="log" aria-live="polite" aria-label="Notices">
      {shown.map((notice) => (
        <div key={notice.id} className={`notice notice-${notice.kind}`}>
          <Icon name={notice.kind === "done" ? "succeeded" : "error"} />
          <span>{notice.text}</span>
          <button type="button" className="icon-only" onClick={() => dismiss(notice.id)}>
            <Icon name="close" />
            <span className="hidden">Dismiss</span>
          </button>
        </div>
      ))}
    </div>
  );
}
