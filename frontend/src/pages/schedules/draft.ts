/** A schedule while it is written: all fields as text, of which the chosen plan is sent. Pure. */

import type { PlanInput, Schedule, ScheduleInput } from "../../api/schedules";

export interface ScheduleDraft {
  name: string;
  task: string;
  written: Record<string, string>;
  kind: "cron" | "every" | "at";
  cron: string;
  every: string;
  at: string;
  zone: string;
  overlap: NonNullable<ScheduleInput["overlap"]>;
  missed: NonNullable<ScheduleInput["missed"]>;
  enabled: boolean;
}

export function draftOf(schedule: Schedule | undefined, zone: string): ScheduleDraft {
  const kwargs = schedule?.arguments?.kwargs ?? {};
  return {
    name: schedule?.name ?? "",
    task: schedule?.task ?? "",
    written: Object.fromEntries(
      Object.entries(kwargs).map(([name, value]) => [name, writtenOf(value)]),
    ),
    kind: schedule === undefined || schedule.cron !== "" ? "cron" : schedule.every ? "every" : "at",
    cron: schedule?.cron || "0 3 * * *",
    every: String(schedule?.every ?? 300),
    at: schedule?.at?.slice(0, 16) ?? "",
    zone: schedule?.time_zone ?? zone,
    overlap: schedule?.overlap ?? "skip",
    missed: schedule?.missed ?? "once",
    enabled: schedule?.enabled ?? true,
  };
}

const writtenOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value);

/** Only the plan that is chosen is sent; the server forgets another kind by itself. */
export function planOf(draft: ScheduleDraft): PlanInput {
  const zone = { time_zone: draft.zone };
  if (draft.kind === "cron") return { cron: draft.cron, ...zone };
  if (draft.kind === "every") return { every: Number(draft.every), ...zone };
  return { at: draft.at, ...zone };
}
