/** One argument of a task, in the kind of field that its schema asks for. */

import { useId } from "react";
import type { Field } from "../../lib/schema";

interface Properties {
  field: Field;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

export function ArgumentField({ field, value, error, onChange }: Properties) {
  const id = useId();
  const notes = [field.hint, field.required ? "" : "may be left empty"].filter(Boolean).join("; ");
  const shared = {
    id,
    name: field.name,
    "aria-describedby": `${id}-notes`,
    "aria-invalid": error !== undefined || undefined,
    "aria-required": field.required || undefined,
  };
  return (
    <div className="field">
      <label htmlFor={id}>
        <span>
          {field.name}
          {field.required && <span className="quiet"> (needed)</span>}
        </span>
      </label>
      {input()}
      <span className="field-notes" id={`${id}-notes`}>
        {error === undefined ? notes : <span className="field-error">{error}</span>}
      </span>
    </div>
  );

  function input() {
    const onText = (event: { target: { value: string } }) => onChange(event.target.value);
    switch (field.kind) {
      case "switch":
        return (
          <input
            {...shared}
            type="checkbox"
            checked={value === "true"}
            onChange={(event) => onChange(String(event.target.checked))}
          />
        );
      case "choice":
        return (
          <select {...shared} value={value} onChange={onText}>
            <option value="">–</option>
            {field.choices.map((choice) => (
              <option key={String(choice)} value={JSON.stringify(choice)}>
                {String(choice)}
              </option>
            ))}
          </select>
        );
      case "json":
        return <textarea {...shared} rows={3} spellCheck={false} value={value} onChange={onText} />;
      default:
        return (
          <input
            {...shared}
            inputMode={field.kind === "text" ? "text" : "decimal"}
            autoComplete="off"
            value={value}
            onChange={onText}
          />
        );
    }
  }
}
