import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queuesQuery } from "../../api/resources";
import { quoted } from "../../lib/filter";
import { age, count } from "../../lib/format";
import { useInterval } from "../../live/LiveContext";
import { Badge, Empty, Loaded, Panel } from "../../ui/parts";
import { useQueues } from "../queues/useQueues";

export function QueueStrip() {
  const query = useQuery({ ...queuesQuery, refetchInterval: useInterval() });
  const told = useQueues();
  return (
    <Panel title="Queues" tools={<Link to="/queues">All of them</Link>}>
      <Loaded query={query}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title="No queue is known yet">
              <p>
                Name them in <code>TASKS</code>, or enqueue a job.
              </p>
            </Empty>
          ) : (
            <div className="table-in-panel">
              <table>
                <thead>
                  <tr>
                    <th>Queue</th>
                    <th className="number">Ready</th>
                    <th className="number">Oldest</th>
                    <th>State</th>
                  </tr>
                </thead>
                <tbody>
                  {results.map((queue) => {
                    const now = told(queue);
                    return (
                      <tr key={queue.name}>
                        <td>
                          <Link to="/jobs" search={{ q: `queue:${quoted(queue.name)}` }}>
                            {queue.name}
                          </Link>
                        </td>
                        <td className="number">{count(now.ready)}</td>
                        <td className="number">{age(now.oldest)}</td>
                        <td>
                          {now.paused ? (
                            <>
                              <Badge name="paused" />
                              <span className="row-note">by {now.paused_by}</span>
                            </>
                          ) : (
                            <Badge name="alive" label="open" />
                          )}
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}
