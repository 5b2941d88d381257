/** The connection and its status, for every page. */

import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { reach } from "../api/client";
import { socketUrl } from "../app/config";
import { type Listener, LiveConnection } from "./connection";
import type { Topic } from "./protocol";
import { intervalOf, type Mode, modeOf } from "./status";

/** A tab that is hidden for less keeps its connection: people look back and forth. */
const HIDDEN_MS = 15_000;

interface Live {
  connection: LiveConnection;
  mode: Mode;
  lostAt: number | null;
  pausedBy: "viewer" | "selection" | "hidden" | null;
  /** Pause, or go on. */
  toggle: () => void;
  /** A selection freezes what is shown, whatever the viewer has paused. */
  freeze: (frozen: boolean) => void;
}

const Context = createContext<Live | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [connection] = useState(() => new LiveConnection(socketUrl()));
  const phase = useSyncExternalStore(connection.watch, () => connection.phase);
  const refused = useSyncExternalStore(connection.watch, () => connection.hasRefused);
  const lostAt = useSyncExternalStore(reach.watch, () => reach.lostAt);
  const [paused, setPaused] = useState(false);
  const [frozen, setFrozen] = useState(false);
  const hidden = useHidden();

  useEffect(() => {
    if (paused || frozen || hidden) {
      connection.pause();
      return;
    }
    connection.start();
  }, [connection, paused, frozen, hidden]);

  useEffect(() => {
    const gone = () => {
      connection.lose();
      reach.lost();
    };
    const back = () => {
      if (connection.phase === "waiting") connection.start();
    };
    window.addEventListener("offline", gone);
    window.addEventListener("online", back);
    return () => {
      window.removeEventListener("offline", gone);
      window.removeEventListener("online", back);
    };
  }, [connection]);

  const mode = modeOf({
    phase,
    refused,
    hasSocket: socketUrl() !== "",
    failures: connection.failures,
    paused: paused || frozen,
    hidden,
    lostAt,
  });

  // Whoever comes back, or was told nothing for a while, sees what is true now.
  const before = useRef(mode);
  useEffect(() => {
    if (before.current === "paused" && mode !== "paused") void queries.invalidateQueries();
    before.current = mode;
  }, [mode, queries]);

  const value = useMemo<Live>(
    () => ({
      connection,
      mode,
      lostAt,
      pausedBy: frozen ? "selection" : paused ? "viewer" : hidden ? "hidden" : null,
      toggle: () => setPaused((was) => !was),
      freeze: setFrozen,
    }),
    [connection, mode, lostAt, paused, frozen, hidden],
  );
  return <Context value={value}>{children}</Context>;
}

export function useLive(): Live {
  const live = useContext(Context);
  if (live === null) throw new Error("outside of LiveProvider");
  return live;
}

/** How often a query asks by itself, by what is possible now. */
export const useInterval = (): number | false => intervalOf(useLive().mode);

/** Listen to a topic for as long as the component is shown; `again` re-subscribes where it changes. */
export function useTopic(topic: Topic | null, listener: Listener, again = ""): void {
  const { connection } = useLive();
  const latest = useRef(listener);
  latest.current = listener;
  const subscription = useRef<ReturnType<LiveConnection["subscribe"]> | null>(null);

  useEffect(() => {
    if (topic === null) return;
    subscription.current = connection.subscribe(topic, {
      params: () => latest.current.params(),
      onChanges: (changes) => latest.current.onChanges(changes),
      onResync: (reason) => latest.current.onResync(reason),
    });
    return () => {
      subscription.current?.end();
      subscription.current = null;
    };
  }, [connection, topic]);

  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    void again;
    subscription.current?.again();
  }, [again]);
}

function useHidden(): boolean {
  const [hidden, setHidden] = useState(false);
  useEffect(() => {
    let timer: number | undefined;
    const changed = () => {
      window.clearTimeout(timer);
      if (document.visibilityState === "visible") setHidden(false);
      else timer = window.setTimeout(() => setHidden(true), HIDDEN_MS);
    };
    document.addEventListener("visibilitychange", changed);
    return () => {
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", changed);
    };
  }, []);
  return hidden;
}
