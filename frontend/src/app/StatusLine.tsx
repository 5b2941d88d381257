/** One line that says how true the page is: live, polling, paused, or offline since when. */

import { clock } from "../lib/format";
import { useLive } from "../live/LiveContext";
import { POLL_SECONDS } from "../live/status";
import { serverTime } from "./clock";
import { loginUrl } from "./config";
import { useZone } from "./preferences";
import { useShortcuts } from "./shortcuts";

export function StatusLine() {
  const { mode, lostAt, pausedBy, toggle } = useLive();
  const zone = useZone();
  useShortcuts({ p: toggle });
  const canToggle = pausedBy !== "selection" && mode !== "signed-out";
  return (
    <div className={`status status-${mode}`}>
      <span className="status-dot" aria-hidden="true" />
      <span role="status">{words()}</span>
      {mode === "signed-out" && <a href={loginUrl()}>Log in</a>}
      {canToggle && (
        <button type="button" className="status-toggle" onClick={toggle} aria-keyshortcuts="p">
          {pausedBy === null ? "Pause" : "Go on"}
        </button>
      )}
    </div>
  );

  function words(): string {
    if (mode === "live") return "Live";
    if (mode === "connecting") return "Connecting …";
    if (mode === "polling") return `Polling ${POLL_SECONDS} s`;
    if (mode === "offline") return `Offline since ${clock(serverTime(lostAt ?? 0), zone, true)}`;
    if (mode === "signed-out") return "Signed out";
    if (pausedBy === "selection") return "Paused: jobs are selected";
    return pausedBy === "hidden" ? "Paused: hidden" : "Paused";
  }
}
