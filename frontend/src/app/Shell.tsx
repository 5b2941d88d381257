/** What is around every page: where one is, what the connection is, how to go elsewhere. */

import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import { zoneName } from "../lib/format";
import { Icon } from "../ui/Icon";
import { Notices } from "../ui/Notices";
import { serverNow } from "./clock";
import { config } from "./config";
import { Help } from "./Help";
import { nextTheme, otherZone, useTheme, useZone } from "./preferences";
import { StatusLine } from "./StatusLine";
import { useShortcuts } from "./shortcuts";

const PAGES = [
  ["/", "Overview"],
  ["/jobs", "Jobs"],
  ["/errors", "Errors"],
  ["/queues", "Queues"],
  ["/schedules", "Schedules"],
  ["/workers", "Workers"],
  ["/submit", "Submit a job"],
] as const;

const THEME_ICON = { auto: "half", light: "sun", dark: "moon" } as const;

export function Shell() {
  const [help, setHelp] = useState(false);
  useShortcuts({ "?": () => setHelp(true) });
  useTitle();
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <div className="top-row">
          <Link to="/" className="brand" aria-label="jobqueue, overview">
            <Icon name="queue" />
            <span>jobqueue</span>
          </Link>
          <StatusLine />
          <div className="top-tools">
            <Tools onHelp={() => setHelp(true)} />
          </div>
        </div>
        <nav className="tabs" aria-label="Pages">
          {PAGES.map(([to, label]) => (
            <Link key={to} to={to} activeOptions={{ exact: to === "/", includeSearch: false }}>
              {label}
            </Link>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<p className="quiet">Loading …</p>}>
          <Outlet />
        </Suspense>
      </main>
      <Notices />
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

function Tools({ onHelp }: { onHelp: () => void }) {
  const theme = useTheme();
  const zone = useZone();
  return (
    <>
      <button type="button" className="tool" onClick={otherZone} title="Zone of the times shown">
        {zone === "utc" ? "UTC" : "Local"}
        <span className="wide-only">
          &nbsp;time{zone === "local" && ` (${zoneName(serverNow())})`}
        </span>
        <span className="hidden"> is shown. Change it</span>
      </button>
      <button type="button" className="tool icon-only" onClick={nextTheme}>
        <Icon name={THEME_ICON[theme]} />
        <span className="hidden">Theme: {theme}. Change it</span>
      </button>
      <button type="button" className="tool icon-only" onClick={onHelp}>
        <Icon name="help" />
        <span className="hidden">Keyboard shortcuts</span>
      </button>
      {config.admin !== "" && (
        <a className="tool" href={config.admin}>
          Admin
        </a>
      )}
    </>
  );
}

function useTitle(): void {
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => {
    const bare = path.replace(/\/$/, "");
    const page = PAGES.find(([to]) => to !== "/" && bare.startsWith(to));
    document.title = `${page?.[1] ?? "Overview"} · jobqueue`;
  }, [path]);
}

export function NotFound() {
  return (
    <section className="empty">
      <h1>There is nothing at this address</h1>
      <p>
        It may be an old link. <Link to="/">Go to the overview</Link>, or{" "}
        <Link to="/jobs">look for a job</Link>.
      </p>
    </section>
  );
}
