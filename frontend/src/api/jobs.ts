/** Jobs over HTTP: lists, one, what is done with them. */

import { queryOptions } from "@tanstack/react-query";
import { answer, client, type Schemas } from "./client";

export type JobSummary = Schemas["JobSummary"];
export type JobDetail = Schemas["JobDetail"];
export type Attempt = Schemas["AttemptDocument"];
export type TaskDocument = Schemas["TaskDocument"];

export const PAGE_SIZE = 50;

export interface JobsAsked {
  q: string;
  older?: string;
  newer?: string;
}

export const jobsQuery = ({ q, older, newer }: JobsAsked) =>
  queryOptions({
    queryKey: ["jobs", q, older ?? "", newer ?? ""],
    queryFn: ({ signal }) =>
      answer(
        client.GET("/jobs/", {
          params: {
            query: {
              q: q || DEFAULT_FILTER,
              limit: PAGE_SIZE,
              older_than: older,
              newer_than: newer,
            },
          },
          signal,
        }),
      ),
  });

/** What an empty field means, as the filter language has it. */
export const DEFAULT_FILTER = "state:live,dead";

/** Read some jobs of a list again. */
export async function readJobs(ids: readonly string[]): Promise<JobSummary[]> {
  const q = `id:${ids.join(",")} state:any`;
  const found = await answer(client.GET("/jobs/", { params: { query: { q, limit: ids.length } } }));
  return found.results;
}

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) =>
      answer(client.GET("/jobs/{job_id}/", { params: { path: { job_id: id } }, signal })),
  });

const ofJob = (id: string) => ({ params: { path: { job_id: id } } });

export const attemptsQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id, "attempts"],
    queryFn: ({ signal }) =>
      answer(client.GET("/jobs/{job_id}/attempts/", { ...ofJob(id), signal })),
  });

export const stepsQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id, "steps"],
    queryFn: ({ signal }) => answer(client.GET("/jobs/{job_id}/steps/", { ...ofJob(id), signal })),
  });

export const logQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id, "log"],
    queryFn: ({ signal }) => answer(client.GET("/jobs/{job_id}/log/", { ...ofJob(id), signal })),
  });

export const actionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id, "actions"],
    queryFn: ({ signal }) =>
      answer(client.GET("/jobs/{job_id}/actions/", { ...ofJob(id), signal })),
  });

export const requeueJob = (id: string) =>
  answer(client.POST("/jobs/{job_id}/requeue/", { ...ofJob(id), body: {} }));
export const runJobNow = (id: string) =>
  answer(client.POST("/jobs/{job_id}/run-now/", { ...ofJob(id), body: {} }));
export const discardJob = (id: string, reason: string) =>
  answer(client.POST("/jobs/{job_id}/discard/", { ...ofJob(id), body: { reason } }));
export const cancelJob = (id: string, reason: string, force: boolean) =>
  answer(client.POST("/jobs/{job_id}/cancel/", { ...ofJob(id), body: { reason, force } }));

export type JobChanges = Schemas["JobChangeRequest"];
export const changeJob = (id: string, changes: JobChanges) =>
  answer(client.PATCH("/jobs/{job_id}/", { ...ofJob(id), body: changes }));

export const tasksQuery = queryOptions({
  queryKey: ["tasks"],
  queryFn: ({ signal }) => answer(client.GET("/tasks/", { signal })),
  staleTime: 60_000,
});

export type JobRequest = Schemas["JobRequestRequest"];
/** Enqueue a job; the key makes a repeat of the same request harmless. */
export const submitJob = (job: JobRequest, key: string) =>
  answer(client.POST("/jobs/", { body: job, params: { header: { "Idempotency-Key": key } } }));
