/**
 * A form from a task's argument schema (JSON Schema, as /tasks/ has it): which fields there are,
 * what they begin with, and what is sent. What no field fits is written as JSON. Pure.
 */

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  anyOf?: Schema[];
  prefixItems?: Schema[];
  items?: Schema | boolean;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
}

export type Kind = "text" | "whole" | "number" | "switch" | "choice" | "json";

export interface Field {
  name: string;
  /** Only by its place: it is sent in `args`. */
  byPlace: boolean;
  kind: Kind;
  required: boolean;
  nullable: boolean;
  choices: unknown[];
  hint: string;
  initial: string;
}

const KINDS: Record<string, Kind> = {
  string: "text",
  integer: "whole",
  number: "number",
  boolean: "switch",
};

export function fieldsOf(args: Schema, kwargs: Schema): Field[] {
  const named = kwargs.properties ?? {};
  const required = new Set(kwargs.required ?? []);
  const placed = (args.prefixItems ?? [])
    .filter((schema) => schema.title !== undefined && !(schema.title in named))
    .map((schema) => fieldOf(schema.title ?? "", schema, !("default" in schema), true));
  return [
    ...placed,
    ...Object.entries(named).map(([name, schema]) =>
      fieldOf(name, schema, required.has(name), false),
    ),
  ];
}

function fieldOf(name: string, schema: Schema, required: boolean, byPlace: boolean): Field {
  const { schema: bare, nullable } = withoutNull(schema);
  const kind = kindOf(bare);
  return {
    name,
    byPlace,
    kind,
    required,
    nullable,
    choices: bare.enum ?? [],
    hint: hintOf(bare, kind),
    initial: initialOf(schema.default ?? bare.default, kind),
  };
}

/** `x | null` is the field of x, which may be left empty. */
function withoutNull(schema: Schema): { schema: Schema; nullable: boolean } {
  const kinds = Array.isArray(schema.type) ? schema.type : null;
  if (kinds?.includes("null")) {
    const rest = kinds.filter((one) => one !== "null");
    return { schema: { ...schema, type: rest.length === 1 ? rest[0] : rest }, nullable: true };
  }
  const others = schema.anyOf?.filter((one) => one.type !== "null") ?? [];
  if (schema.anyOf !== undefined && others.length < schema.anyOf.length && others.length === 1) {
    return { schema: others[0] ?? {}, nullable: true };
  }
  return { schema, nullable: false };
}

function kindOf(schema: Schema): Kind {
  if (schema.enum !== undefined) return "choice";
  return (typeof schema.type === "string" && KINDS[schema.type]) || "json";
}

function hintOf(schema: Schema, kind: Kind): string {
  const bounds = [
    schema.minimum === undefined ? "" : `at least ${schema.minimum}`,
    schema.maximum === undefined ? "" : `at most ${schema.maximum}`,
  ].filter(Boolean);
  const type = kind === "json" ? `JSON${schema.type ? `: ${String(schema.type)}` : ""}` : "";
  return [schema.description, schema.format, type, ...bounds].filter(Boolean).join(", ");
}

function initialOf(value: unknown, kind: Kind): string {
  if (value === undefined || value === null) return "";
  return kind === "json" || kind === "choice" ? JSON.stringify(value) : String(value);
}

export interface Call {
  args: unknown[];
  kwargs: Record<string, unknown>;
}

/** Return what is sent for what was written, or what is wrong with it, by field. */
export function callOf(
  fields: readonly Field[],
  written: Readonly<Record<string, string>>,
): { call: Call; errors: Record<string, string> } {
  const call: Call = { args: [], kwargs: {} };
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const text = written[field.name] ?? field.initial;
    if (text === "" && field.kind !== "switch") {
      if (field.required && field.nullable) put(call, field, null);
      else if (field.required) errors[field.name] = "is needed";
      continue; // left out: the function's own default holds
    }
    const value = parsed(field, text);
    if (value instanceof Error) errors[field.name] = value.message;
    else put(call, field, value);
  }
  return { call, errors };
}

function put(call: Call, field: Field, value: unknown): void {
  if (field.byPlace) call.args.push(value);
  else call.kwargs[field.name] = value;
}

function parsed(field: Field, text: string): unknown {
  switch (field.kind) {
    case "text":
      return text;
    case "switch":
      return text === "true";
    case "whole":
      return /^[+-]?\d+$/.test(text.trim()) && Number.isSafeInteger(Number(text))
        ? Number(text)
        : new Error("must be a whole number");
    case "number":
      return text.trim() !== "" && Number.isFinite(Number(text))
        ? Number(text)
        : new Error("must be a number");
    default:
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return new Error("must be JSON: text in quotes, [lists], {objects}, true, false or null");
      }
  }
}
