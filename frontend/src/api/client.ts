/**
 * The HTTP API, typed by its committed OpenAPI document.
 *
 * An answer that is no success becomes a `Refused` with the server's problem (RFC 9457), whose
 * detail says what to do. Whether the server can be reached at all is remembered in `reach`, for the
 * line that says Live, Polling or Offline.
 */

import createClient, { type Middleware } from "openapi-fetch";
import { learn } from "../app/clock";
import { config } from "../app/config";
import { Reach } from "./reach";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export interface ProblemDocument {
  status: number;
  code: string;
  title: string;
  detail: string;
  permission?: string;
  position?: number;
  current_state?: string;
  allowed_actions?: string[];
  errors?: { detail: string; pointer?: string; parameter?: string; header?: string }[];
}

export class Refused extends Error {
  constructor(readonly problem: ProblemDocument) {
    super(problem.detail);
    this.name = "Refused";
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached.");
    this.name = "Unreachable";
  }
}

export const reach = new Reach();

const askedAt = new WeakMap<Request, number>();

const middleware: Middleware = {
  onRequest({ request }) {
    askedAt.set(request, Date.now());
    if (request.method !== "GET") request.headers.set("X-CSRFToken", config.csrf);
  },
  onResponse({ request, response }) {
    learn(response.headers.get("Date"));
    if (response.status === 502 || response.status === 504) reach.lost();
    else reach.found(askedAt.get(request));
  },
  onError() {
    reach.lost();
    return new Unreachable();
  },
};

export const client = createClient<paths>({
  baseUrl: config.api.replace(/\/$/, ""),
  credentials: "same-origin",
  headers: { Accept: "application/json" },
});
client.use(middleware);

/** Return what an answer has, or throw what is wrong. */
export async function answer<T>(
  asked: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await asked;
  if (response.ok) return data as T;
  throw new Refused(problemOf(error, response));
}

function problemOf(error: unknown, response: Response): ProblemDocument {
  if (typeof error === "object" && error !== null && "code" in error) {
    return error as ProblemDocument;
  }
  return {
    status: response.status,
    code: "unknown",
    title: response.statusText,
    detail: `The server answered ${response.status} ${response.statusText}.`,
  };
}

/** What a person is told of an error, whatever it is. */
export function saying(error: unknown): string {
  if (error instanceof Refused) {
    const more = error.problem.errors?.map((one) => one.detail) ?? [];
    return [error.problem.detail, ...more.filter((text) => text !== error.problem.detail)].join(
      " ",
    );
  }
  return error instanceof Error ? error.message : String(error);
}
