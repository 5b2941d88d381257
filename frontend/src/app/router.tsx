/** Every state of the page is an address: what is shown, filtered, sorted and opened. */

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import type { By } from "../api/page";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { config } from "./config";
import { PERIODS, type Period } from "./periods";
import { NotFound, Shell } from "./Shell";
import { parseSearch, stringifySearch, text, within } from "./search";

type Raw = Record<string, unknown>;

const BYS: readonly By[] = ["outcome", "queue", "task", "worker"];
const ORDERS = ["last_seen", "count"] as const;

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: OverviewPage,
  validateSearch: (raw: Raw): { period?: Period; by?: By } => ({
    period: within(raw.period, PERIODS),
    by: within(raw.by, BYS),
  }),
});

const jobs = createRoute({
  getParentRoute: () => root,
  path: "/jobs",
  component: lazyRouteComponent(() => import("../pages/jobs/JobsPage"), "JobsPage"),
  validateSearch: (raw: Raw): { q?: string; older?: string; newer?: string } => ({
    q: text(raw.q),
    older: text(raw.older),
    newer: text(raw.newer),
  }),
});

const JOB_TABS = ["timeline", "attempts", "steps", "log", "payload", "actions"] as const;
const job = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId",
  component: lazyRouteComponent(() => import("../pages/job/JobPage"), "JobPage"),
  validateSearch: (raw: Raw): { tab?: (typeof JOB_TABS)[number] } => ({
    tab: within(raw.tab, JOB_TABS),
  }),
});

const errors = createRoute({
  getParentRoute: () => root,
  path: "/errors",
  component: lazyRouteComponent(() => import("../pages/errors/ErrorsPage"), "ErrorsPage"),
  validateSearch: (
    raw: Raw,
  ): { period?: Period; order?: (typeof ORDERS)[number]; group?: string } => ({
    period: within(raw.period, PERIODS),
    order: within(raw.order, ORDERS),
    group: text(raw.group),
  }),
});

const queues = createRoute({
  getParentRoute: () => root,
  path: "/queues",
  component: lazyRouteComponent(() => import("../pages/queues/QueuesPage"), "QueuesPage"),
});

const schedules = createRoute({
  getParentRoute: () => root,
  path: "/schedules",
  component: lazyRouteComponent(() => import("../pages/schedules/SchedulesPage"), "SchedulesPage"),
  validateSearch: (raw: Raw): { edit?: string } => ({ edit: text(raw.edit) }),
});

const workers = createRoute({
  getParentRoute: () => root,
  path: "/workers",
  component: lazyRouteComponent(() => import("../pages/workers/WorkersPage"), "WorkersPage"),
});

const submit = createRoute({
  getParentRoute: () => root,
  path: "/submit",
  component: lazyRouteComponent(() => import("../pages/submit/SubmitPage"), "SubmitPage"),
  validateSearch: (raw: Raw): { task?: string } => ({ task: text(raw.task) }),
});

export const router = createRouter({
  routeTree: root.addChildren([overview, jobs, job, errors, queues, schedules, workers, submit]),
  basepath: config.base.replace(/\/$/, "") || "/",
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
