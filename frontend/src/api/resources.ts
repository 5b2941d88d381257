/** What is beside jobs: totals, queues, limits, workers. */

import { queryOptions } from "@tanstack/react-query";
import { answer, client, type Schemas } from "./client";

export type Stats = Schemas["StatsDocument"];
export type Queue = Schemas["QueueDocument"];
export type Worker = Schemas["WorkerDocument"];
export type DeadWorker = Schemas["DeadWorkerDocument"];
export type Limit = Schemas["LimitDocument"];

export const statsQuery = (period: number) =>
  queryOptions({
    queryKey: ["stats", period],
    queryFn: ({ signal }) =>
      answer(client.GET("/stats/", { params: { query: { period } }, signal })),
  });

export const queuesQuery = queryOptions({
  queryKey: ["queues"],
  queryFn: ({ signal }) => answer(client.GET("/queues/", { signal })),
});

export type QueueChange = Schemas["QueueChangeRequest"];
export const changeQueue = (name: string, change: QueueChange) =>
  answer(client.PATCH("/queues/{name}/", { params: { path: { name } }, body: change }));

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }) => answer(client.GET("/workers/", { signal })),
});

export const drainWorker = (id: string) =>
  answer(
    client.POST("/workers/{worker_id}/drain/", { params: { path: { worker_id: id } }, body: {} }),
  );
