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

  /** An answer to what was asked before it was lost says nothing of now. */
  found(askedAt: number = Date.now()): void {
    if (this.lostAt !== null && askedAt >= this.lostAt) this.become(null);
  }

  private become(lostAt: number | null): void {
    this.lostAt = lostAt;
    for (const watcher of this.watchers) watcher();
  }
}
