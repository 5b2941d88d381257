/** What only the page asks for, under /page/: series, errors, findings, bulk operations. */

import { queryOptions } from "@tanstack/react-query";
import { answer, client, type Schemas } from "./client";
import type { paths } from "./schema";

export type Finding = Schemas["FindingDocument"];
export type Spread = Schemas["SpreadDocument"];
export type ErrorGroup = Schemas["ErrorGroupDocument"];
export type BulkRequest = Omit<Schemas["BulkInputRequest"], "dry_run">;
type BulkAnswers = paths["/page/bulk/"]["post"]["responses"];
export type Preview = BulkAnswers[200]["content"]["application/json"];
export type BulkOperation = Schemas["BulkDocument"];
export type By = "outcome" | "queue" | "task" | "worker";

export const throughputQuery = (period: number, by: By) =>
  queryOptions({
    queryKey: ["throughput", period, by],
    queryFn: ({ signal }) =>
      answer(client.GET("/page/throughput/", { params: { query: { period, by } }, signal })),
  });

export const latencyQuery = (period: number) =>
  queryOptions({
    queryKey: ["latency", period],
    queryFn: ({ signal }) =>
      answer(client.GET("/page/latency/", { params: { query: { period } }, signal })),
  });

export const errorsQuery = (period: number, order: "last_seen" | "count", limit = 20) =>
  queryOptions({
    queryKey: ["errors", period, order, limit],
    queryFn: ({ signal }) =>
      answer(client.GET("/page/errors/", { params: { query: { period, order, limit } }, signal })),
  });

export const findingsQuery = queryOptions({
  queryKey: ["findings"],
  queryFn: ({ signal }) => answer(client.GET("/page/findings/", { signal })),
});

export const previewBulk = async (request: BulkRequest): Promise<Preview> =>
  (await answer(client.POST("/page/bulk/", { body: { ...request, dry_run: true } }))) as Preview;

export const startBulk = async (request: BulkRequest): Promise<BulkOperation> =>
  (await answer(client.POST("/page/bulk/", { body: request }))) as BulkOperation;

/** The newest operations, whoever began them. */
export const bulksQuery = queryOptions({
  queryKey: ["bulk"],
  queryFn: ({ signal }) =>
    answer(client.GET("/page/bulk/", { params: { query: { limit: 10 } }, signal })),
});

const ofOperation = (id: string) => ({ params: { path: { operation_id: Number(id) } } });

export const stopBulk = (id: string) =>
  answer(client.POST("/page/bulk/{operation_id}/stop/", { ...ofOperation(id), body: {} }));
export const resumeBulk = (id: string) =>
  answer(client.POST("/page/bulk/{operation_id}/resume/", { ...ofOperation(id), body: {} }));
