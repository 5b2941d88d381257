/** Whether the server answers, and since when it does not. */

export class Reach {
  /** null while it answers. */
  lostAt: number | null = null;
  private readonly watchers = new Set<() => void>();

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  lost(now: number = Date.now()): void {
    if (this.lostAt === null) this.become(now);
  }

  found(): void {
    if (this.lostAt !== null) this.become(null);
  }

  private become(lostAt: number | null): void {
    this.lostAt = lostAt;
    for (const watcher of this.watchers) watcher();
  }
}
