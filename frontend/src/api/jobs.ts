/** Jobs over HTTP: lists, one, what is done with them. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
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

/** Read the first page of a list, beside what is shown of it. */
export const readFirstPage = (q: string) =>
  answer(client.GET("/jobs/", { params: { query: { q: q || DEFAULT_FILTER, limit: PAGE_SIZE } } }));

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

interface Page {
  results: readonly unknown[];
  next: string | null;
}
type Ask = {
  params: { path: { job_id: string }; query: { before?: number } };
  signal: AbortSignal;
};

/** What belongs to a job, the newest first: a page, and more when the viewer asks for it. */
const historyQuery = <P extends Page>(id: string, part: string, read: (ask: Ask) => Promise<P>) =>
  infiniteQueryOptions({
    queryKey: ["job", id, part],
    queryFn: ({ signal, pageParam }) =>
      read({ params: { path: { job_id: id }, query: { before: pageParam } }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) =>
      next === null ? undefined : Number(new URLSearchParams(next.split("?")[1]).get("before")),
  });

export const attemptsQuery = (id: string) =>
  historyQuery(id, "attempts", (ask) => answer(client.GET("/jobs/{job_id}/attempts/", ask)));
export const stepsQuery = (id: string) =>
  historyQuery(id, "steps", (ask) => answer(client.GET("/jobs/{job_id}/steps/", ask)));
export const logQuery = (id: string) =>
  historyQuery(id, "log", (ask) => answer(client.GET("/jobs/{job_id}/log/", ask)));
export const actionsQuery = (id: string) =>
  historyQuery(id, "actions", (ask) => answer(client.GET("/jobs/{job_id}/actions/", ask)));

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
