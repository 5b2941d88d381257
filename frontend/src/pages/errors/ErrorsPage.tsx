import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { bulksQuery, type ErrorGroup, errorsQuery } from "../../api/page";
import { PERIOD_CHOICES, PERIOD_SECONDS, PERIOD_WORDS, type Period } from "../../app/periods";
import { Sparkline } from "../../charts/Sparkline";
import { count, lastName, number, plural } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Badge, Choice, Empty, Loaded, Time } from "../../ui/parts";
import { BulkDialog } from "../jobs/BulkDialog";
import { BulkProgress } from "../jobs/BulkProgress";

const route = getRouteApi("/errors");
/** What an attempt ends with whose worker died. */
const WORKER_LOST = "jobqueue.exceptions.WorkerLost";
const ORDERS = [
  ["last_seen", "Last seen"],
  ["count", "Most often"],
] as const;

export function ErrorsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const queries = useQueryClient();
  const period: Period = search.period ?? "24h";
  const order = search.order ?? "last_seen";
  const query = useQuery({
    ...errorsQuery(PERIOD_SECONDS[period], order, 50),
    refetchInterval: useInterval(),
  });
  const [asking, setAsking] = useState<{ group: ErrorGroup; verb: "requeue" | "discard" } | null>(
    null,
  );
  const [operation, setOperation] = useState<string | null>(null);
  return (
    <>
      <div className="page-head">
        <h1>Errors</h1>
        <div className="page-tools">
          <Choice
            label="Order"
            all={ORDERS}
            value={order}
            onChange={(one) => navigate({ search: (now) => ({ ...now, order: one }) })}
          />
          <Choice
            label="Period"
            all={PERIOD_CHOICES}
            value={period}
            onChange={(one) => navigate({ search: (now) => ({ ...now, period: one }) })}
          />
        </div>
      </div>
      <p className="quiet">
        Attempts that failed or were interrupted, in groups: errors of one class whose messages
        differ only in numbers, ids and quoted text are alike; # and … stand for those.
      </p>
      <BulkProgress own={operation} onDone={() => void query.refetch()} />
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title="No attempt has failed in this period">
              <p>When one does, its class, its message and how often it happens stand here.</p>
            </Empty>
          ) : (
            <ul className="groups">
              {results.map((group) => (
                <Group
                  key={group.fingerprint}
                  group={group}
                  words={PERIOD_WORDS[period]}
                  isOpen={search.group === group.fingerprint}
                  onAsk={(verb) => setAsking({ group, verb })}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {asking !== null && (
        <BulkDialog
          verb={asking.verb}
          past={asking.verb === "requeue" ? "requeued" : "discarded"}
          target={{ filter: `state:dead fingerprint:${asking.group.fingerprint}` }}
          onClose={() => setAsking(null)}
          onStarted={(id) => {
            setAsking(null);
            setOperation(id);
            void queries.invalidateQueries({ queryKey: bulksQuery.queryKey });
          }}
        />
      )}
    </>
  );
}

interface GroupProperties {
  group: ErrorGroup;
  words: string;
  isOpen: boolean;
  onAsk: (verb: "requeue" | "discard") => void;
}

/** It may stand below others: whoever came for it, sees it. */
const intoView = (group: HTMLElement | null) => group?.scrollIntoView({ block: "nearest" });

function Group({ group, words, isOpen, onAsk }: GroupProperties) {
  const filter = `fingerprint:${group.fingerprint}`;
  return (
    <li
      className={isOpen ? "group panel is-open" : "group panel"}
      id={group.fingerprint}
      ref={isOpen ? intoView : undefined}
    >
      <div className="group-what">
        <h2 title={group.error_class}>{lastName(group.error_class)}</h2>
        <p className="group-message">{group.message}</p>
        <p className="quiet">
          Last in <b title={group.task}>{lastName(group.task)}</b> <Time at={group.last_seen} />,
          first <Time at={group.first_seen} />
        </p>
      </div>
      <div className="group-course">
        <Sparkline
          counts={group.counts}
          width={160}
          label={`${plural(group.count, "time")} in the last ${words}`}
        />
        <span>
          <b>{plural(group.count, "time")}</b> in the last {words}
          {group.total > group.count && `, ${number(group.total)} in all`}
        </span>
      </div>
      <div className="group-ways">
        {group.error_class === WORKER_LOST && <Badge name="lost" />}
        {group.dead.value > 0 && (
          <>
            <Badge name="dead" label={`${count(group.dead)} dead`} />
            <button type="button" className="small primary" onClick={() => onAsk("requeue")}>
              Requeue …
            </button>
            <button type="button" className="small danger-quiet" onClick={() => onAsk("discard")}>
              Discard …
            </button>
          </>
        )}
        <Link className="button small" to="/jobs" search={{ q: `${filter} state:any` }}>
          All jobs
        </Link>
        <Link className="button small" to="/jobs/$jobId" params={{ jobId: group.job_id }}>
          Last job
        </Link>
      </div>
    </li>
  );
}
