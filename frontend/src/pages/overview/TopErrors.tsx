import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { errorsQuery } from "../../api/page";
import { Sparkline } from "../../charts/Sparkline";
import { count, lastName, plural } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Badge, Loaded, Panel, Time } from "../../ui/parts";

export function TopErrors({ period }: { period: number }) {
  const query = useQuery({
    ...errorsQuery(period, "count", 5),
    refetchInterval: useInterval(),
  });
  return (
    <Panel title="Errors" tools={<Link to="/errors">All of them</Link>}>
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <p className="all-well">
              <Badge name="succeeded" label="None" /> No attempt has failed in this period.
            </p>
          ) : (
            <ul className="error-list">
              {results.map((group) => (
                <li key={group.fingerprint}>
                  <Link to="/errors" search={{ group: group.fingerprint }}>
                    <b>{lastName(group.error_class)}</b> {group.message}
                  </Link>
                  <span className="error-facts">
                    <Sparkline
                      counts={group.counts}
                      width={72}
                      height={18}
                      label={`${plural(group.count, "time")} in the period`}
                    />
                    <span>{plural(group.count, "time")}</span>
                    <span className="quiet">
                      last <Time at={group.last_seen} />
                    </span>
                    {group.dead.value > 0 && (
                      <Badge name="dead" label={`${count(group.dead)} dead`} />
                    )}
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
