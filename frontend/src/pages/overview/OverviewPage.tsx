import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { PERIOD_SECONDS, PERIODS, type Period } from "../../app/periods";
import { Choice } from "../../ui/parts";
import { Findings } from "./Findings";
import { QueueStrip } from "./QueueStrip";
import { Tiles } from "./Tiles";
import { TopErrors } from "./TopErrors";
import { WorkerStrip } from "./WorkerStrip";

const Charts = lazy(() => import("./Charts"));
const PulsePanel = lazy(() => import("./PulsePanel"));
const route = getRouteApi("/");

export function OverviewPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const period: Period = search.period ?? "1h";
  const by = search.by ?? "outcome";
  const seconds = PERIOD_SECONDS[period];
  return (
    <>
      <div className="page-head">
        <h1>Overview</h1>
        <Choice
          label="Period"
          all={PERIODS.map((one) => [one, one] as const)}
          value={period}
          onChange={(one) => navigate({ search: (now) => ({ ...now, period: one }) })}
        />
      </div>
      <Tiles period={period} />
      <Findings />
      <Suspense fallback={<div className="panel pulse-space" />}>
        <PulsePanel />
      </Suspense>
      <WorkerStrip />
      <Suspense fallback={<div className="panel chart-space" />}>
        <Charts
          period={seconds}
          by={by}
          onBy={(one) => navigate({ search: (now) => ({ ...now, by: one }) })}
        />
      </Suspense>
      <div className="columns">
        <QueueStrip />
        <TopErrors period={seconds} />
      </div>
    </>
  );
}
