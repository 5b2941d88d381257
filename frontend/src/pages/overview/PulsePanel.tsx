/** The last two minutes, as far as they were pushed. Loaded after the figures. */

import { useQuery } from "@tanstack/react-query";
import { workersQuery } from "../../api/resources";
import { serverNow } from "../../app/clock";
import { PulseChart } from "../../charts/PulseChart";
import { hasStopped } from "../../lib/words";
import { usePulse, useStats } from "../../live/useStats";

export default function PulsePanel() {
  const pulse = usePulse();
  const stats = useStats();
  const workers = useQuery(workersQuery);
  if (stats === null && pulse.samples.length === 0) return null;
  const readAt = workers.dataUpdatedAt + serverNow() - Date.now();
  const died = (workers.data?.dead ?? []).filter((worker) => !hasStopped(worker));
  const marks = died.map((worker) => ({
    at: readAt - worker.dead_seconds * 1_000,
    label: `${worker.name || worker.host} (${worker.pid}) died`,
  }));
  return (
    <section className="panel" aria-label="The last two minutes">
      <PulseChart pulse={pulse} marks={marks} />
    </section>
  );
}
