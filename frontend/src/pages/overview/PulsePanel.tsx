/** The last two minutes, as far as they were pushed. Loaded after the figures. */

import { useQuery } from "@tanstack/react-query";
import { workersQuery } from "../../api/resources";
import { PulseChart } from "../../charts/PulseChart";
import { deathMarks } from "../../lib/crew";
import { usePulse, useStats } from "../../live/useStats";

export default function PulsePanel() {
  const pulse = usePulse();
  const stats = useStats();
  const workers = useQuery(workersQuery);
  if (stats === null && pulse.samples.length === 0) return null;
  const marks = deathMarks(workers.data?.dead ?? []);
  return (
    <section className="panel" aria-label="The last two minutes">
      <PulseChart pulse={pulse} marks={marks} />
    </section>
  );
}
