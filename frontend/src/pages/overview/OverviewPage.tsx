import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { PERIOD_CHOICES, PERIOD_SECONDS, PERIOD_WORDS, type Period } from "../../app/periods";
import { Choice } from "../../ui/parts";
import { Findings } from "./Findings";
import { QueueStrip } from "./QueueStrip";
import { TopErrors } from "./TopErrors";
import { Totals } from "./Totals";
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
          all={PERIOD_CHOICES}
          value={period}
          onChange={(one) => navigate({ search: (now) => ({ ...now, period: one }) })}
        />
      </div>
      <Findings />
      <Totals period={period} />
      <Suspense fallback={<div className="panel pulse-space" />}>
        <PulsePanel />
      </Suspense>
      <WorkerStrip />
      <Suspense fallback={<div className="panel chart-space" />}>
        <Charts
          period={seconds}
          words={`in the last ${PERIOD_WORDS[period]}`}
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
