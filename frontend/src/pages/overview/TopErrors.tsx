import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ErrorGroup, errorsQuery } from "../../api/page";
import { Sparkline } from "../../charts/Sparkline";
import { count, lastName, number, plural } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Badge, Loaded, Panel, Time } from "../../ui/parts";

const SHOWN = 5;
/** So many are asked for, to say how many there are. */
const ASKED = 20;
const STANDS_FOR = "# stands for a number or an id, … for quoted text";

export function TopErrors({ period }: { period: number }) {
  const query = useQuery({
    ...errorsQuery(period, "count", ASKED),
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
            <>
              <ul className="error-list">
                {results.slice(0, SHOWN).map((group) => (
                  <li key={group.fingerprint}>
                    <Link
                      to="/errors"
                      search={{ group: group.fingerprint }}
                      title={/[#…]/.test(group.message) ? STANDS_FOR : undefined}
                    >
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
              <p className="quiet">{remarkOn(results)}</p>
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** How many are not shown, and how to read those that are. */
function remarkOn(groups: readonly ErrorGroup[]): string {
  const all = groups.length < ASKED ? number(groups.length) : `${number(ASKED)} or more`;
  const most = groups.length > SHOWN ? [`${SHOWN} of ${all} errors shown, the most frequent.`] : [];
  const isAlike = groups.slice(0, SHOWN).some(({ message }) => /[#…]/.test(message));
  return [...most, ...(isAlike ? [`${STANDS_FOR}.`] : [])].join(" ");
}
