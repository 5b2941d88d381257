/**
 * One WebSocket for the whole page: it subscribes, comes back by itself, and says what it is.
 *
 * Every (re)connection begins with a resync of each subscription, because nothing is known of what
 * happened in between; so does a gap in the sequence numbers. A hidden tab lets go of the socket:
 * the server then has one viewer less to look for. Nothing here knows React.
 */

import { backoff, CAP_MS } from "./backoff";
import {
  decode,
  FORBIDDEN,
  MAX_LAG_SECONDS,
  type Params,
  type ServerFrame,
  SIGNED_OUT,
  TOO_MANY,
  type Topic,
} from "./protocol";

export type Phase =
  | "connecting"
  | "open"
  | "lagging"
  | "waiting"
  | "paused"
  | "signed-out"
  | "forbidden";

export interface Listener {
  /** What to subscribe with, at the moment of the (re)connection. */
  params(): Params;
  onChanges(changes: unknown): void;
  /** Read everything again: something was missed. */
  onResync(reason: string): void;
}

interface Subscription {
  id: string;
  topic: Topic;
  listener: Listener;
  seq: number | null;
  refused: boolean;
}

export interface Environment {
  open(url: string): WebSocket;
  later(run: () => void, ms: number): number;
  cancel(timer: number): void;
  now(): number;
  random(): number;
}

const browser: Environment = {
  open: (url) => new WebSocket(url),
  later: (run, ms) => window.setTimeout(run, ms),
  cancel: (timer) => window.clearTimeout(timer),
  now: Date.now,
  random: Math.random,
};

const PING_MS = 5_000;
/** A server that has not said hello for so long is polled; it looks for a session for up to 10 s. */
export const CONNECT_MS = 15_000;
/** A server that has answered no ping for so long is taken for gone. */
const SILENCE_MS = 15_000;

export class LiveConnection {
  phase: Phase = "waiting";
  failures = 0;
  permissions: readonly string[] | null = null;
  private socket: WebSocket | null = null;
  private readonly subscriptions = new Map<string, Subscription>();
  private readonly watchers = new Set<() => void>();
  private retry: number | null = null;
  private pulse: number | null = null;
  private heard = 0;
  private next = 1;

  constructor(
    private readonly url: string,
    private readonly environment: Environment = browser,
  ) {}

  /** Call `watcher` whenever the phase, the permissions or `hasRefused` change; return its end. */
  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  get isOpen(): boolean {
    return this.phase === "open" || this.phase === "lagging";
  }

  /** Whether the server tells nothing of a topic that is shown: it has to be asked then. */
  get hasRefused(): boolean {
    return [...this.subscriptions.values()].some((each) => each.refused);
  }

  /** Subscribe now and after each reconnection. `again` does so with what `params` says by then. */
  subscribe(topic: Topic, listener: Listener): { again: () => void; end: () => void } {
    const id = `s${this.next++}`;
    const subscription = { id, topic, listener, seq: null, refused: false };
    this.subscriptions.set(id, subscription);
    if (this.isOpen) this.ask(subscription);
    return {
      again: () => {
        if (this.isOpen && this.subscriptions.has(id)) this.ask(subscription);
      },
      end: () => {
        if (this.subscriptions.delete(id) && this.isOpen) this.send({ type: "unsubscribe", id });
        if (subscription.refused) this.tell();
      },
    };
  }

  /** Connect, unless it is connected already; no wait is waited out. */
  start(): void {
    if (this.url === "" || this.isOpen || this.phase === "connecting") return;
    this.connect();
  }

  /** The machine has no network: do not wait for the silence. */
  lose(): void {
    if (this.isOpen || this.phase === "connecting") this.fail();
  }

  /** Let go while nobody looks. */
  pause(): void {
    this.drop();
    this.become("paused");
  }

  private connect(): void {
    this.drop();
    this.become("connecting");
    let socket: WebSocket;
    try {
      socket = this.environment.open(this.url);
    } catch {
      this.fail();
      return;
    }
    this.socket = socket;
    this.retry = this.environment.later(() => this.fail(), CONNECT_MS);
    socket.onmessage = (event) => {
      if (socket === this.socket) this.receive(decode(event.data));
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.closed(event.code);
    };
  }

  private receive(frame: ServerFrame | null): void {
    this.heard = this.environment.now();
    if (frame?.type === "hello") this.greeted(frame.permissions);
    else if (frame?.type === "event") this.event(frame.id, frame.seq, frame.changes);
    else if (frame?.type === "resync") this.resync(frame.id, frame.seq, frame.reason);
    else if (frame?.type === "error") this.refused(frame.id);
    else if (frame?.type === "pong") {
      this.become((frame.lag_seconds ?? 0) > MAX_LAG_SECONDS ? "lagging" : "open");
    }
  }

  private greeted(permissions: readonly string[]): void {
    this.permissions = permissions;
    if (this.isOpen) {
      this.tell();
      return;
    }
    this.failures = 0;
    this.settle();
    this.become("open");
    for (const subscription of this.subscriptions.values()) {
      this.ask(subscription);
      subscription.listener.onResync("connected");
    }
    this.beat();
  }

  private event(id: string, seq: number, changes: unknown): void {
    const subscription = this.subscriptions.get(id);
    if (subscription === undefined) return;
    const before = subscription.seq;
    if (before !== null && seq <= before && seq !== 1) return;
    subscription.seq = seq;
    if (before !== null && seq > before + 1) subscription.listener.onResync("gap");
    else subscription.listener.onChanges(changes);
  }

  private resync(id: string, seq: number, reason: string): void {
    const subscription = this.subscriptions.get(id);
    if (subscription === undefined) return;
    subscription.seq = seq;
    subscription.listener.onResync(reason);
  }

  private refused(id: string | null): void {
    const subscription = id === null ? undefined : this.subscriptions.get(id);
    if (subscription === undefined) return;
    subscription.refused = true;
    this.tell();
  }

  private closed(code: number): void {
    this.socket = null;
    if (code === SIGNED_OUT || code === FORBIDDEN) {
      this.drop();
      this.become(code === SIGNED_OUT ? "signed-out" : "forbidden");
      return;
    }
    this.fail(code === TOO_MANY ? CAP_MS : 0);
  }

  private fail(atLeast = 0): void {
    this.drop();
    this.failures += 1;
    this.become("waiting");
    const wait = Math.max(atLeast, backoff(this.failures, this.environment.random));
    this.retry = this.environment.later(() => this.connect(), wait);
  }

  private beat(): void {
    this.heard = this.environment.now();
    const turn = () => {
      if (this.environment.now() - this.heard > SILENCE_MS) {
        this.fail();
        return;
      }
      this.send({ type: "ping" });
      this.pulse = this.environment.later(turn, PING_MS);
    };
    this.pulse = this.environment.later(turn, PING_MS);
  }

  private ask(subscription: Subscription): void {
    subscription.seq = null;
    if (subscription.refused) {
      subscription.refused = false;
      this.tell();
    }
    const { id, topic, listener } = subscription;
    this.send({ type: "subscribe", id, topic, params: listener.params() });
  }

  private send(frame: object): void {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(frame));
  }

  /** What was to happen by the clock does not. */
  private settle(): void {
    for (const timer of [this.retry, this.pulse]) {
      if (timer !== null) this.environment.cancel(timer);
    }
    this.retry = null;
    this.pulse = null;
  }

  private drop(): void {
    this.settle();
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private become(phase: Phase): void {
    if (phase === this.phase) return;
    this.phase = phase;
    this.tell();
  }

  private tell(): void {
    for (const watcher of this.watchers) watcher();
  }
}
