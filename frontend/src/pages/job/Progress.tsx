import type { JobDetail } from "../../api/jobs";
import { number, percent } from "../../lib/format";
import { Time } from "../../ui/parts";

export function Progress({ progress }: { progress: NonNullable<JobDetail["progress"]> }) {
  const { done, total, message, reported_at } = progress;
  return (
    <div className="progress">
      <progress max={total ?? 1} value={total === null ? undefined : done} aria-label="Progress" />
      <span>
        {number(done)}
        {total !== null && ` of ${number(total)} (${percent(total > 0 ? done / total : 0)})`}
        {message !== "" && `: ${message}`}{" "}
        <span className="quiet">
          reported <Time at={reported_at} />
        </span>
      </span>
    </div>
  );
}
