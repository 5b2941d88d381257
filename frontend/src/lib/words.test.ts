import { expect, it } from "vitest";
import { curl, hasStopped, personOf, slotsOf, wordOf } from "./words";

it("writes a request for a shell, whatever is in it", () => {
  expect(curl("GET", "http://127.0.0.1/jobs/")).toBe(
    `curl -H "Authorization: Token $TOKEN" 'http://127.0.0.1/jobs/'`,
  );
  const posted = curl("POST", "http://127.0.0.1/jobs/", { args: ["it's"] });
  expect(posted).toContain(`-d '{"args":["it'\\''s"]}'`);
  expect(posted).toContain("Idempotency-Key");
});

it("calls a worker dead only if nobody told it to stop", () => {
  expect(hasStopped({ reason: "stopped" })).toBe(true);
  expect(hasStopped({ reason: "killed or cut off" })).toBe(false);
});

it("calls an attempt whose worker died interrupted, as nothing is lost with it", () => {
  expect(wordOf("lost")).toBe("interrupted");
  expect(wordOf("timed_out")).toBe("timed out");
});

it("calls people by their name, without the number of the account", () => {
  expect(personOf("kim#7")).toBe("kim");
  expect(personOf("jobs enqueue")).toBe("jobs enqueue");
});

it("never says that more slots are busy than there are", () => {
  expect(slotsOf(3, 4)).toBe("3 of 4 slots");
  expect(slotsOf(6, 4)).toBe("4 of 4 slots, 2 claimed");
  expect(slotsOf(0, 1)).toBe("0 of 1 slot");
});
