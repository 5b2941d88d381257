/** A schedule as a form, with the ticks that it would have while it is written. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useId, useState } from "react";
import { Refused, saying } from "../../api/client";
import { tasksQuery } from "../../api/jobs";
import {
  changeSchedule,
  createSchedule,
  previewQuery,
  type Schedule,
  type ScheduleInput,
} from "../../api/schedules";
import { config } from "../../app/config";
import { callOf, type Field, fieldsOf, type Schema } from "../../lib/schema";
import { notify } from "../../ui/Notices";
import { Panel, Time } from "../../ui/parts";
import { ArgumentField } from "../submit/ArgumentField";
import { draftOf, planOf, type ScheduleDraft } from "./draft";

interface Properties {
  schedule: Schedule | undefined;
  onClose: () => void;
}

export function ScheduleForm({ schedule, onClose }: Properties) {
  const queries = useQueryClient();
  const tasks = useQuery(tasksQuery);
  const [draft, setDraft] = useState(() => draftOf(schedule, config.zone));
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const set = (change: Partial<ScheduleDraft>) => setDraft((before) => ({ ...before, ...change }));
  const all = tasks.data?.tasks ?? [];
  const task = all.find((one) => one.name === draft.task) ?? (schedule ? undefined : all[0]);
  const fields = task ? fieldsOf(task.args as Schema, task.kwargs as Schema) : [];

  const save = useMutation({
    mutationFn: (input: ScheduleInput) => {
      if (schedule === undefined) return createSchedule(input);
      const { name: _, ...change } = input;
      return changeSchedule(schedule.id, change);
    },
    onSuccess: (saved) => {
      notify(`${saved.name}: ${saved.words}.`);
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      onClose();
    },
  });

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { call, errors } = callOf(fields, draft.written);
    setWrong(errors);
    if (Object.keys(errors).length > 0) return;
    save.mutate({
      name: draft.name,
      task: task?.name ?? draft.task,
      ...(task === undefined ? {} : call),
      ...planOf(draft),
      overlap: draft.overlap,
      missed: draft.missed,
      enabled: draft.enabled,
    });
  };

  return (
    <Panel title={schedule === undefined ? "New schedule" : `Change ${schedule.name}`}>
      <form className="schedule-form" onSubmit={submit}>
        <div className="fields">
          {schedule === undefined && (
            <label>
              Name
              <input required value={draft.name} onChange={(e) => set({ name: e.target.value })} />
            </label>
          )}
          <label>
            Task
            <select
              value={task?.name ?? draft.task}
              onChange={(e) => set({ task: e.target.value, written: {} })}
            >
              {task === undefined && <option value={draft.task}>{draft.task || "–"}</option>}
              {all.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
          <Arguments fields={fields} draft={draft} wrong={wrong} onChange={set} />
          <PlanFields draft={draft} onChange={set} />
          <Policies draft={draft} onChange={set} />
          {save.error && (
            <p className="field-error" role="alert">
              {saying(save.error)}
            </p>
          )}
          <div className="form-buttons">
            <button type="submit" className="primary" disabled={save.isPending}>
              Save
            </button>
            <button type="button" onClick={onClose}>
              Cancel
            </button>
          </div>
        </div>
        <Preview draft={draft} />
      </form>
    </Panel>
  );
}

interface PartProperties {
  draft: ScheduleDraft;
  onChange: (change: Partial<ScheduleDraft>) => void;
}

function Arguments({
  fields,
  draft,
  wrong,
  onChange,
}: PartProperties & { fields: readonly Field[]; wrong: Record<string, string> }) {
  return fields.map((field) => (
    <ArgumentField
      key={field.name}
      field={field}
      value={draft.written[field.name] ?? field.initial}
      error={wrong[field.name]}
      onChange={(value) => onChange({ written: { ...draft.written, [field.name]: value } })}
    />
  ));
}

function PlanFields({ draft, onChange }: PartProperties) {
  return (
    <>
      <div className="field-row">
        <label>
          Ticks
          <select
            value={draft.kind}
            onChange={(e) => onChange({ kind: e.target.value as ScheduleDraft["kind"] })}
          >
            <option value="cron">by a cron expression</option>
            <option value="every">every so often</option>
            <option value="at">once</option>
          </select>
        </label>
        {draft.kind === "cron" && (
          <label>
            Expression
            <input
              required
              spellCheck={false}
              value={draft.cron}
              onChange={(e) => onChange({ cron: e.target.value })}
            />
          </label>
        )}
        {draft.kind === "every" && (
          <label>
            Every (seconds)
            <input
              required
              type="number"
              min={1}
              value={draft.every}
              onChange={(e) => onChange({ every: e.target.value })}
            />
          </label>
        )}
        {draft.kind === "at" && (
          <label>
            At, in its zone
            <input
              required
              type="datetime-local"
              value={draft.at}
              onChange={(e) => onChange({ at: e.target.value })}
            />
          </label>
        )}
      </div>
      <ZoneField zone={draft.zone} onChange={(zone) => onChange({ zone })} />
    </>
  );
}

function ZoneField({ zone, onChange }: { zone: string; onChange: (zone: string) => void }) {
  const list = useId();
  return (
    <label>
      Time zone
      <input
        required
        list={list}
        spellCheck={false}
        value={zone}
        onChange={(e) => onChange(e.target.value)}
      />
      <datalist id={list}>
        {["UTC", ...Intl.supportedValuesOf("timeZone")].map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  );
}

function Policies({ draft, onChange }: PartProperties) {
  return (
    <>
      <div className="field-row">
        <label>
          If an earlier run has not ended
          <select
            value={draft.overlap}
            onChange={(e) => onChange({ overlap: e.target.value as ScheduleDraft["overlap"] })}
          >
            <option value="allow">run beside it</option>
            <option value="skip">skip the tick</option>
            <option value="queue">wait for it</option>
          </select>
        </label>
        <label>
          If ticks were missed
          <select
            value={draft.missed}
            onChange={(e) => onChange({ missed: e.target.value as ScheduleDraft["missed"] })}
          >
            <option value="once">run once for all</option>
            <option value="all">run for each</option>
            <option value="skip">skip them</option>
          </select>
        </label>
      </div>
      <label className="check-line">
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={(e) => onChange({ enabled: e.target.checked })}
        />
        Enabled
      </label>
    </>
  );
}

function Preview({ draft }: { draft: ScheduleDraft }) {
  const plan = useDeferredValue(JSON.stringify({ ...planOf(draft), count: 5 }));
  const query = useQuery({
    ...previewQuery(JSON.parse(plan)),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const refused = query.error instanceof Refused;
  return (
    <section className="preview" aria-label="Preview" aria-live="polite">
      <h3>The next five ticks</h3>
      {query.error ? (
        <p className={refused ? "field-error" : "quiet"}>{saying(query.error)}</p>
      ) : (
        <>
          <p>{query.data?.words}</p>
          <ol>
            {query.data?.next_ticks.map((tick) => (
              <li key={tick.at}>
                <b>{inZone(tick.local)}</b>
                <span className="quiet">
                  {" "}
                  · <Time at={tick.at} plain /> · <Time at={tick.at} />
                </span>
                {tick.note !== "" && <span className="row-note">{tick.note}</span>}
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

/** The wall clock of the schedule's zone, as the server wrote it. */
function inZone(local: string): string {
  const wall = new Date(`${local.slice(0, 19)}Z`);
  return new Intl.DateTimeFormat("en-GB", {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: "UTC",
  }).format(wall);
}
