import { expect, it } from "vitest";
import { curl } from "./words";

it("writes a request for a shell, whatever is in it", () => {
  expect(curl("GET", "http://127.0.0.1/jobs/")).toBe(
    `curl -H "Authorization: Token $TOKEN" 'http://127.0.0.1/jobs/'`,
  );
  const posted = curl("POST", "http://127.0.0.1/jobs/", { args: ["it's"] });
  expect(posted).toContain(`-d '{"args":["it'\\''s"]}'`);
  expect(posted).toContain("Idempotency-Key");
});
