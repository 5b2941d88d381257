/** Recurring plans: lists, changes, and when a plan would tick. */

import { queryOptions } from "@tanstack/react-query";
import { answer, client, type Schemas } from "./client";

export type Schedule = Schemas["ScheduleDocument"];
export type ScheduleInput = Schemas["ScheduleInputRequest"];
export type ScheduleChange = Schemas["ScheduleChangeRequest"];
export type PlanInput = Schemas["PreviewInputRequest"];
export type NextTick = Schemas["NextTick"];

export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => answer(client.GET("/schedules/", { signal })),
});

const ofSchedule = (id: number) => ({ params: { path: { schedule_id: id } } });

export const previewQuery = (plan: PlanInput) =>
  queryOptions({
    queryKey: ["preview", plan],
    queryFn: () => answer(client.POST("/schedules/preview/", { body: plan })),
    staleTime: 30_000,
  });

export const ticksQuery = (id: number) =>
  queryOptions({
    queryKey: ["schedules", id, "ticks"],
    queryFn: ({ signal }) =>
      answer(client.GET("/schedules/{schedule_id}/ticks/", { ...ofSchedule(id), signal })),
  });

export const createSchedule = (input: ScheduleInput) =>
  answer(client.POST("/schedules/", { body: input }));
export const changeSchedule = (id: number, change: ScheduleChange) =>
  answer(client.PATCH("/schedules/{schedule_id}/", { ...ofSchedule(id), body: change }));
export const enableSchedule = (id: number) =>
  answer(client.POST("/schedules/{schedule_id}/enable/", { ...ofSchedule(id), body: {} }));
export const disableSchedule = (id: number, reason: string) =>
  answer(client.POST("/schedules/{schedule_id}/disable/", { ...ofSchedule(id), body: { reason } }));
export const runSchedule = (id: number) =>
  answer(client.POST("/schedules/{schedule_id}/run/", { ...ofSchedule(id), body: {} }));
export const deleteSchedule = async (id: number): Promise<void> => {
  await answer(client.DELETE("/schedules/{schedule_id}/", ofSchedule(id)));
};
