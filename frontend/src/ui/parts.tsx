/** Small parts that many pages share. */

import { type ReactNode, useId, useState } from "react";
import { saying } from "../api/client";
import { useNow } from "../app/clock";
import { useZone } from "../app/preferences";
import { exact, relative } from "../lib/format";
import { wordOf } from "../lib/words";
import { hasIcon, Icon, type IconName } from "./Icon";
import { notify } from "./Notices";

/** An icon and a word, never color alone. */
export function Badge({ name, label }: { name: string; label?: string }) {
  return (
    <span className={`badge badge-${name}`}>
      {hasIcon(name) && <Icon name={name} />}
      {label ?? wordOf(name)}
    </span>
  );
}

/** A time: how long ago, with the exact one to hover, to copy and for machines. */
export function Time({ at, plain = false }: { at: string | null | undefined; plain?: boolean }) {
  const zone = useZone();
  const now = useNow();
  if (!at) return <span className="quiet">–</span>;
  return (
    <time dateTime={at} title={plain ? relative(at, now) : exact(at, zone)}>
      {plain ? exact(at, zone) : relative(at, now)}
    </time>
  );
}

export function Panel({
  title,
  tools,
  children,
  id,
}: {
  title: string;
  tools?: ReactNode;
  children: ReactNode;
  id?: string;
}) {
  const own = useId();
  return (
    <section className="panel" aria-labelledby={own} id={id}>
      <div className="panel-head">
        <h2 id={own}>{title}</h2>
        {tools}
      </div>
      {children}
    </section>
  );
}

/** What is shown where nothing is: what it would be, and how to get there. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A problem in the place of what could not be read. */
export function Trouble({ error }: { error: unknown }) {
  return (
    <div className="trouble" role="alert">
      <Icon name="error" />
      <span>{saying(error)}</span>
    </div>
  );
}

/** What a query has, or that it loads, or what went wrong; old data stay while news are asked for. */
export function Loaded<T>({
  query,
  children,
}: {
  query: { data: T | undefined; error: unknown; isPending: boolean };
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Trouble error={query.error} />;
  return <p className="quiet loading">Loading …</p>;
}

/** The way to what lies before the first page of a history. */
export function Earlier({
  query,
  what,
}: {
  query: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    error: unknown;
    fetchNextPage: () => unknown;
  };
  what: string;
}) {
  if (!query.hasNextPage) return null;
  return (
    <div className="earlier">
      {query.isFetchNextPageError && <Trouble error={query.error} />}
      <button
        type="button"
        className="small"
        disabled={query.isFetchingNextPage}
        onClick={() => query.fetchNextPage()}
      >
        {query.isFetchingNextPage ? "Loading …" : `Show earlier ${what}`}
      </button>
    </div>
  );
}

export function Copy({
  text,
  label,
  icon = "copy",
}: {
  text: string;
  label: string;
  icon?: IconName;
}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      window.setTimeout(() => setCopied(false), 2_000);
    } catch {
      notify(
        "The browser does not let the page copy: it does so on https and on this machine only.",
        "refused",
      );
    }
  };
  return (
    <button type="button" className="small" onClick={copy}>
      <Icon name={copied ? "succeeded" : icon} />
      {copied ? "Copied" : label}
    </button>
  );
}

export function Choice<T extends string>({
  label,
  all,
  value,
  onChange,
}: {
  label: string;
  all: readonly (readonly [T, string])[];
  value: T;
  onChange: (value: T) => void;
}) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend className="hidden">{label}</legend>
      {all.map(([one, words]) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === value} onChange={() => onChange(one)} />
          <span>{words}</span>
        </label>
      ))}
    </fieldset>
  );
}
