/** Icons of the page, drawn with strokes in the color of the text; a word always stands beside. */

const PATHS = {
  queue: "M2 4.5h12M2 8h12M2 11.5h6M10.5 12l1.5 1.5 3-3.5",
  help: "M6 6a2 2 0 1 1 2.6 1.9c-.4.2-.6.5-.6.9V9.5M8 11.8v.2M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7",
  half: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13M8 1.5v13M10.3 2.5v11M12.4 4v8",
  scheduled: "M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12M8 5v3l2 1.5",
  ready: "M8 12.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9",
  blocked: "M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12M4 4l8 8",
  running: "M5 3l7 5-7 5z",
  retrying: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3",
  succeeded: "M3 8.5l3.5 3.5L13 4.5",
  dead: "M4 4l8 8M12 4l-8 8",
  died: "M4 4l8 8M12 4l-8 8",
  cancelled: "M3.5 8h9",
  failed: "M4 4l8 8M12 4l-8 8",
  timed_out: "M5 2h6M5 14h6M5.5 2c0 4 5 4 5 6s-5 2-5 6M10.5 2c0 4-5 4-5 6s5 2 5 6",
  lost: "M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z",
  snoozed: "M5 4h6l-6 8h6",
  stopped: "M4.5 4.5h7v7h-7z",
  paused: "M6 3.5v9M10 3.5v9",
  alive: "M2 8h3l2-4 2 8 2-4h3",
  draining: "M8 2v8M5 7l3 3 3-3M3 13.5h10",
  expired: "M5 2h6M5 14h6M5.5 2c0 4 5 4 5 6s-5 2-5 6M10.5 2c0 4-5 4-5 6s5 2 5 6",
  error: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.2",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.2",
  info: "M8 7.5V11M8 5v.2M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.5 10.5L14 14",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5L7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  close: "M4 4l8 8M12 4l-8 8",
} as const;

export type IconName = keyof typeof PATHS;

export const hasIcon = (name: string): name is IconName => name in PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
