import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { saying } from "../../api/client";
import {
  deleteSchedule,
  disableSchedule,
  enableSchedule,
  runSchedule,
  type Schedule,
  schedulesQuery,
} from "../../api/schedules";
import { quoted } from "../../lib/filter";
import { lastName } from "../../lib/format";
import { useLive } from "../../live/LiveContext";
import { Dialog } from "../../ui/Dialog";
import { notify } from "../../ui/Notices";
import { Badge, Empty, Loaded, Time, Trouble } from "../../ui/parts";
import { ScheduleForm } from "./ScheduleForm";

const route = getRouteApi("/schedules");
const NEW = "new";

/** No topic tells of schedules: they are read with the clock. */
const LOOK_MS = 10_000;

const STATE_BADGE: Record<Schedule["state"], string> = {
  ticking: "alive",
  over: "succeeded",
  disabled: "paused",
  failing: "error",
  undeclared: "warning",
};

export function SchedulesPage() {
  const { edit } = route.useSearch();
  const navigate = route.useNavigate();
  const { mode } = useLive();
  const query = useQuery({
    ...schedulesQuery,
    refetchInterval: mode === "paused" ? false : LOOK_MS,
  });
  const [asking, setAsking] = useState<{ schedule: Schedule; what: "disable" | "delete" } | null>(
    null,
  );
  const open = (one: string | undefined) => navigate({ search: { edit: one } });
  return (
    <>
      <div className="page-head">
        <h1>Schedules</h1>
        <button type="button" className="primary" onClick={() => open(NEW)}>
          New schedule
        </button>
      </div>
      <Loaded query={query}>
        {({ results }) => (
          <>
            {results.length === 0 && edit !== NEW && (
              <Empty title="Nothing is scheduled">
                <p>
                  A schedule makes at most one job for each of its ticks, however many schedulers
                  run. Make one here, or declare it in code with <code>@schedule</code>.
                </p>
              </Empty>
            )}
            {edit !== undefined && (
              <ScheduleForm
                key={edit}
                schedule={results.find((one) => String(one.id) === edit)}
                onClose={() => open(undefined)}
              />
            )}
            {results.length > 0 && (
              <div className="table-wrap">
                <table className="cards">
                  <thead>
                    <tr>
                      <th>Schedule</th>
                      <th>State</th>
                      <th>Plan</th>
                      <th>Next</th>
                      <th>Last</th>
                      <th>
                        <span className="hidden">What can be done</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {results.map((schedule) => (
                      <Row
                        key={schedule.id}
                        schedule={schedule}
                        onEdit={() => open(String(schedule.id))}
                        onAsk={(what) => setAsking({ schedule, what })}
                      />
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </>
        )}
      </Loaded>
      {asking !== null && <Asking {...asking} onClose={() => setAsking(null)} />}
    </>
  );
}

interface RowProperties {
  schedule: Schedule;
  onEdit: () => void;
  onAsk: (what: "disable" | "delete") => void;
}

function Row({ schedule, onEdit, onAsk }: RowProperties) {
  const queries = useQueryClient();
  const read = () => void queries.invalidateQueries({ queryKey: ["schedules"] });
  const refused = (error: unknown) => notify(saying(error), "refused");
  const run = useMutation({
    mutationFn: () => runSchedule(schedule.id),
    onSuccess: (started) => {
      notify(`${schedule.name}: ${started.outcome}.`);
      read();
    },
    onError: refused,
  });
  const enable = useMutation({
    mutationFn: () => enableSchedule(schedule.id),
    onSuccess: () => {
      notify(`${schedule.name} ticks again.`);
      read();
    },
    onError: refused,
  });
  const may = (action: Schedule["allowed_actions"][number]) =>
    schedule.allowed_actions.includes(action);
  const [next] = schedule.next_ticks;
  return (
    <tr>
      <td data-label="Schedule">
        <Link to="/jobs" search={{ q: `schedule:${quoted(schedule.name)} state:any` }}>
          {schedule.name}
        </Link>
        <span className="row-note" title={schedule.task}>
          {lastName(schedule.task)}
          {schedule.source === "code" && ", declared in code"}
        </span>
      </td>
      <td data-label="State">
        {schedule.late ? (
          <Badge name="error" label="late" />
        ) : (
          <Badge name={STATE_BADGE[schedule.state]} label={schedule.state} />
        )}
        {schedule.late && <span className="row-note">due, and nobody ticks it</span>}
        {schedule.error !== "" && <span className="row-note">{schedule.error}</span>}
      </td>
      <td data-label="Plan">
        {schedule.words}
        <span className="row-note">
          {schedule.time_zone}
          {schedule.overlap !== "allow" && `, overlap: ${schedule.overlap}`}
        </span>
      </td>
      <td data-label="Next">
        <Time at={next?.at} />
        {next?.note && <span className="row-note">{next.note}</span>}
      </td>
      <td data-label="Last">
        {schedule.last === null ? (
          <span className="quiet">never</span>
        ) : (
          <>
            <Time at={schedule.last.tick} />
            {schedule.last.job_id === null ? (
              <span className="row-note">{schedule.last.outcome}</span>
            ) : (
              <Link className="row-note" to="/jobs/$jobId" params={{ jobId: schedule.last.job_id }}>
                {schedule.last.job_state ?? schedule.last.outcome}
              </Link>
            )}
          </>
        )}
      </td>
      <td className="row-ways">
        {may("run_schedule") && (
          <button
            type="button"
            className="small"
            disabled={run.isPending}
            onClick={() => run.mutate()}
          >
            Run now
          </button>
        )}
        {may("update_schedule") && (
          <button type="button" className="small" onClick={onEdit}>
            Change …
          </button>
        )}
        {may("enable_schedule") && (
          <button
            type="button"
            className="small primary"
            disabled={enable.isPending}
            onClick={() => enable.mutate()}
          >
            Enable
          </button>
        )}
        {may("disable_schedule") && (
          <button type="button" className="small" onClick={() => onAsk("disable")}>
            Disable …
          </button>
        )}
        {may("delete_schedule") && (
          <button type="button" className="small danger-quiet" onClick={() => onAsk("delete")}>
            Delete …
          </button>
        )}
      </td>
    </tr>
  );
}

interface AskingProperties {
  schedule: Schedule;
  what: "disable" | "delete";
  onClose: () => void;
}

function Asking({ schedule, what, onClose }: AskingProperties) {
  const queries = useQueryClient();
  const act = useMutation({
    mutationFn: async (reason: string) => {
      if (what === "delete") await deleteSchedule(schedule.id);
      else await disableSchedule(schedule.id, reason);
    },
    onSuccess: () => {
      notify(`${schedule.name} is ${what}d.`);
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    act.mutate(String(new FormData(event.currentTarget).get("reason") ?? ""));
  };
  const verb = what === "delete" ? "Delete" : "Disable";
  return (
    <Dialog title={`${verb} ${schedule.name}`} onClose={onClose}>
      <form className="fields" onSubmit={submit}>
        <p>
          {what === "delete"
            ? "The schedule goes with the history of its ticks; the jobs that it made stay."
            : "It ticks no more until it is enabled; the jobs that it made go on."}
        </p>
        {what === "disable" && (
          <label>
            Reason
            <input name="reason" maxLength={255} />
          </label>
        )}
        {act.error && <Trouble error={act.error} />}
        <div className="dialog-buttons">
          {/* biome-ignore lint/a11y/noAutofocus: a dialog that ends something starts on the way out */}
          <button type="button" onClick={onClose} autoFocus>
            Cancel
          </button>
          <button type="submit" className="danger" disabled={act.isPending}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
