/** What the server says in the page's <meta name="jobqueue-…">; see jobqueue/live/page.py. */

function meta(name: string, otherwise: string): string {
  const found = document.querySelector<HTMLMetaElement>(`meta[name="jobqueue-${name}"]`);
  return found?.content ?? otherwise;
}

export const config = {
  base: meta("base", "/jobqueue/"),
  api: meta("api", "/jobqueue/api/v1/"),
  /** "" under WSGI: there is none, and the page polls. */
  socket: meta("socket", "/jobqueue/ws/"),
  admin: meta("admin", ""),
  login: meta("login", "/admin/login/"),
  csrf: meta("csrf", ""),
  user: meta("user", ""),
  zone: meta("zone", "UTC"),
};

export function socketUrl(): string {
  if (config.socket === "") return "";
  const { protocol, host } = window.location;
  return `${protocol === "https:" ? "wss" : "ws"}://${host}${config.socket}`;
}

export function loginUrl(): string {
  const { pathname, search } = window.location;
  return `${config.login}?next=${encodeURIComponent(pathname + search)}`;
}
