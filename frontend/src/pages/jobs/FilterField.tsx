/**
 * The filter field: text in the filter language, with suggestions for the token at the caret
 * (a combobox with a listbox), and the server's complaint in its place.
 */

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { Refused, saying } from "../../api/client";
import { tasksQuery } from "../../api/jobs";
import { queuesQuery } from "../../api/resources";
import { useShortcuts } from "../../app/shortcuts";
import { accept, type Known, type Suggestion, suggestions } from "../../lib/filter";
import { Icon } from "../../ui/Icon";

interface Properties {
  q: string;
  error: unknown;
  onChange: (q: string) => void;
}

export function FilterField({ q, error, onChange }: Properties) {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(q);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [caret, setCaret] = useState(0);
  const known = useKnown();
  const list = useId();
  const offered = open ? suggestions(text, caret, known) : [];

  useEffect(() => setText(q), [q]);
  useShortcuts({ "/": () => field.current?.focus() });

  const moveCaret = () => setCaret(field.current?.selectionStart ?? 0);
  const take = (suggestion: Suggestion) => {
    const [now, at] = accept(text, caret, suggestion);
    setText(now);
    setCaret(at);
    setActive(-1);
    requestAnimationFrame(() => field.current?.setSelectionRange(at, at));
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setOpen(true);
      setActive((now) => (offered.length === 0 ? -1 : wrapped(now + step, offered.length)));
    } else if (event.key === "Enter" || (event.key === "Tab" && active >= 0)) {
      const chosen = offered[active];
      if (chosen !== undefined) {
        event.preventDefault();
        take(chosen);
      } else if (event.key === "Enter") {
        event.preventDefault();
        setOpen(false);
        onChange(text);
      }
    } else if (event.key === "Escape") {
      if (offered.length > 0) setOpen(false);
      else field.current?.blur();
    }
  };

  const complaint = error instanceof Refused && error.problem.status < 500 ? error : null;
  return (
    <search className="filter">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setOpen(false);
          onChange(text);
        }}
      >
        <Icon name="search" />
        <input
          ref={field}
          role="combobox"
          aria-label="Filter"
          aria-expanded={offered.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={active >= 0 ? `${list}-${active}` : undefined}
          aria-invalid={complaint !== null || undefined}
          aria-describedby={complaint === null ? undefined : `${list}-error`}
          placeholder="e.g. state:dead queue:mail args.order:42 text"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setOpen(true);
            setActive(-1);
            moveCaret();
          }}
          onKeyDown={pressed}
          onKeyUp={moveCaret}
          onClick={() => {
            moveCaret();
            setOpen(true);
          }}
          onBlur={() => setOpen(false)}
        />
        {text !== "" && (
          <button
            type="button"
            className="icon-only"
            onClick={() => {
              setText("");
              onChange("");
            }}
          >
            <Icon name="close" />
            <span className="hidden">Clear the filter</span>
          </button>
        )}
        <button type="submit">Filter</button>
      </form>
      <div
        className="suggestions"
        role="listbox"
        id={list}
        aria-label="Suggestions"
        hidden={offered.length === 0}
      >
        {offered.map((one, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={one.insert}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(one)}
          >
            <code>{one.insert}</code> <span className="quiet">{one.hint}</span>
          </div>
        ))}
      </div>
      {complaint !== null && (
        <p className="field-error" id={`${list}-error`} role="alert">
          {saying(complaint)}
        </p>
      )}
    </search>
  );
}

const wrapped = (at: number, length: number) => (at < 0 ? length - 1 : at >= length ? 0 : at);

/** Names that the page knows, to suggest. */
function useKnown(): Known {
  const queues = useQuery({ ...queuesQuery, retry: false });
  const tasks = useQuery({ ...tasksQuery, retry: false });
  return {
    queue: queues.data?.results.map((queue) => queue.name),
    task: tasks.data?.tasks.map((task) => task.name),
  };
}
