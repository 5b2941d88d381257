import { expect, it } from "vitest";
import { draftOf, planOf } from "./draft";

it("sends the kind of plan that is chosen, and no other", () => {
  const draft = draftOf(undefined, "Europe/Berlin");
  expect(planOf(draft)).toEqual({ cron: "0 3 * * *", time_zone: "Europe/Berlin" });
  expect(planOf({ ...draft, kind: "every", every: "60" })).toEqual({
    every: 60,
    time_zone: "Europe/Berlin",
  });
  expect(planOf({ ...draft, kind: "at", at: "2030-01-01T08:00" })).toEqual({
    at: "2030-01-01T08:00",
    time_zone: "Europe/Berlin",
  });
});
