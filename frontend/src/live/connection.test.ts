import { beforeEach, describe, expect, it } from "vitest";
import { backoff, CAP_MS } from "./backoff";
import { CONNECT_MS, type Environment, LiveConnection } from "./connection";

class Socket {
  readyState = 1;
  sent: Record<string, unknown>[] = [];
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  isClosed = false;
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.isClosed = true;
  }
  says(frame: object) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  dies(code = 1006) {
    this.onclose?.({ code });
  }
}

let sockets: Socket[];
let timers: Map<number, [() => void, number]>;
let now: number;
let connection: LiveConnection;
let heard: { changes: unknown[]; resyncs: string[] };

const hello = { type: "hello", version: 1, time: "", user: "kim", permissions: ["view"] };
const listener = {
  params: () => ({ filter: "state:dead" }),
  onChanges: (changes: unknown) => heard.changes.push(changes),
  onResync: (reason: string) => heard.resyncs.push(reason),
};
const last = (): Socket => sockets.at(-1) as Socket;
const subscribed = () => last().sent.at(-1) as { id: string };
const waits = () => [...timers.values()].map(([, ms]) => ms);
const fire = () => {
  const [[key, [run]]] = [...timers] as [[number, [() => void, number]]];
  timers.delete(key);
  run();
};

beforeEach(() => {
  sockets = [];
  timers = new Map();
  now = 0;
  heard = { changes: [], resyncs: [] };
  let next = 0;
  const environment: Environment = {
    open: () => {
      sockets.push(new Socket());
      return last() as unknown as WebSocket;
    },
    later: (run, ms) => {
      next += 1;
      timers.set(next, [run, ms]);
      return next;
    },
    cancel: (timer) => timers.delete(timer),
    now: () => now,
    random: () => 1,
  };
  connection = new LiveConnection("/ws", environment);
  connection.start();
});

describe("a connection", () => {
  it("asks for its subscriptions, and reads all anew, once the server has said hello", () => {
    connection.subscribe("jobs", listener);
    expect(last().sent).toEqual([]);
    last().says(hello);
    expect(last().sent[0]).toMatchObject({ topic: "jobs", params: { filter: "state:dead" } });
    expect(heard.resyncs).toEqual(["connected"]);
  });

  it("passes changes on, and what came twice only once", () => {
    last().says(hello);
    connection.subscribe("jobs", listener);
    const { id } = subscribed();
    last().says({ type: "event", id, seq: 1, changes: ["a"] });
    last().says({ type: "event", id, seq: 2, changes: ["b"] });
    last().says({ type: "event", id, seq: 2, changes: ["b"] });
    expect(heard.changes).toEqual([["a"], ["b"]]);
  });

  it("reads all anew after a gap, and when it is told to", () => {
    last().says(hello);
    connection.subscribe("jobs", listener);
    const { id } = subscribed();
    last().says({ type: "event", id, seq: 1, changes: [] });
    last().says({ type: "event", id, seq: 3, changes: [] });
    last().says({ type: "resync", id, seq: 4, reason: "many-changes" });
    last().says({ type: "event", id, seq: 5, changes: [] });
    expect(heard.resyncs).toEqual(["gap", "many-changes"]);
    expect(heard.changes).toHaveLength(2);
  });

  it("replaces a subscription, whose numbers begin again", () => {
    last().says(hello);
    const subscription = connection.subscribe("jobs", listener);
    const { id } = subscribed();
    last().says({ type: "event", id, seq: 7, changes: ["old"] });
    subscription.again();
    expect(subscribed()).toMatchObject({ type: "subscribe", id });
    last().says({ type: "event", id, seq: 1, changes: ["new"] });
    expect(heard.changes).toEqual([["old"], ["new"]]);
    subscription.end();
    expect(last().sent.at(-1)).toEqual({ type: "unsubscribe", id });
    last().says({ type: "event", id, seq: 2, changes: ["late"] });
    expect(heard.changes).toHaveLength(2);
  });

  it("knows that a subscription was refused until it is asked for anew, or ends", () => {
    last().says(hello);
    const jobs = connection.subscribe("jobs", listener);
    const refused = () => {
      const problem = { code: "invalid-filter", detail: "…" };
      last().says({ type: "error", id: subscribed().id, problem });
      last().says({ type: "error", id: null, problem });
      return connection.hasRefused;
    };
    expect(connection.hasRefused).toBe(false);
    expect(refused()).toBe(true);
    jobs.again();
    expect(connection.hasRefused).toBe(false);
    expect(refused()).toBe(true);
    jobs.end();
    expect(connection.hasRefused).toBe(false);
  });

  it("takes new permissions without asking for everything again", () => {
    last().says(hello);
    connection.subscribe("jobs", listener);
    const { length } = last().sent;
    last().says({ ...hello, permissions: ["view", "cancel"] });
    expect(connection.permissions).toEqual(["view", "cancel"]);
    expect(last().sent).toHaveLength(length);
  });

  it("comes back after ever longer pauses, and starts afresh once it is open", () => {
    last().dies();
    expect(waits()).toEqual([500]);
    fire();
    last().dies();
    expect(waits()).toEqual([1_000]);
    fire();
    last().says(hello);
    expect(connection.phase).toBe("open");
    expect(connection.failures).toBe(0);
  });

  it("gives a server up that does not say hello, so that the page polls meanwhile", () => {
    expect(waits()).toEqual([CONNECT_MS]);
    fire();
    expect(connection.phase).toBe("waiting");
    expect(last().isClosed).toBe(true);
    expect(connection.failures).toBe(1);
  });

  it.each([
    [4401, "signed-out"],
    [4403, "forbidden"],
  ])("stays away after close code %i", (code, phase) => {
    last().dies(code);
    expect(connection.phase).toBe(phase);
    expect(timers.size).toBe(0);
  });

  it("waits long where the server has too many viewers", () => {
    last().dies(4429);
    expect(waits()).toEqual([CAP_MS]);
  });

  it("lets go while nobody looks, and hears nothing of the old socket afterwards", () => {
    last().says(hello);
    const old = last();
    connection.pause();
    expect(old.isClosed).toBe(true);
    old.dies();
    expect(connection.phase).toBe("paused");
    connection.start();
    expect(sockets).toHaveLength(2);
  });

  it("takes a server that is silent for gone", () => {
    last().says(hello);
    fire();
    expect(last().sent.at(-1)).toEqual({ type: "ping" });
    now += 60_000;
    fire();
    expect(connection.phase).toBe("waiting");
  });

  it("does not wait for the silence where the machine has no network", () => {
    last().says(hello);
    connection.lose();
    expect(connection.phase).toBe("waiting");
    connection.start();
    last().says(hello);
    expect(connection.phase).toBe("open");
  });

  it("is not live while the server has not asked its database", () => {
    last().says(hello);
    last().says({ type: "pong", time: "", lag_seconds: 11 });
    expect(connection.phase).toBe("lagging");
    last().says({ type: "pong", time: "", lag_seconds: null });
    expect(connection.phase).toBe("open");
  });

  it("ignores what it does not know", () => {
    last().says(hello);
    last().says({ type: "news" });
    last().onmessage?.({ data: "no json" });
    expect(connection.phase).toBe("open");
  });
});

it("has nothing to connect to under plain WSGI", () => {
  const nowhere = new LiveConnection("");
  nowhere.start();
  expect(nowhere.phase).toBe("waiting");
});

it("waits between half of the pause and all of it, and never longer than the cap", () => {
  expect(backoff(1, () => 0)).toBe(250);
  expect(backoff(3, () => 1)).toBe(2_000);
  expect(backoff(99, () => 1)).toBe(CAP_MS);
});
