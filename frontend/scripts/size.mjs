/**
 * Print what the browser loads before it shows the first page, compressed as a server would, and
 * fail above the budget. Charts and the other pages come when they are looked at.
 */

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET_KB = 150;
const folder = new URL("../../jobqueue/static/jobqueue/live/", import.meta.url);
const chunks = JSON.parse(readFileSync(new URL("manifest.json", folder), "utf8"));

const entry = Object.keys(chunks).find((name) => chunks[name].isEntry);
const initial = new Set();
const walk = (name) => {
  if (initial.has(name)) return;
  initial.add(name);
  for (const other of chunks[name].imports ?? []) walk(other);
};
walk(entry);

const size = (file) => gzipSync(readFileSync(new URL(file, folder)), { level: 9 }).length / 1000;
const first = [...initial].map((name) => chunks[name].file);
const later = Object.values(chunks)
  .map((chunk) => chunk.file)
  .filter((file) => file.endsWith(".js") && !first.includes(file));
const styles = [...new Set(Object.values(chunks).flatMap((chunk) => chunk.css ?? []))];
const sum = (files) => files.reduce((total, file) => total + size(file), 0);

const kb = sum(first);
console.log(`initial JS  ${kb.toFixed(1)} kB gzip (budget ${BUDGET_KB})`);
console.log(`later JS    ${sum(later).toFixed(1)} kB gzip in ${later.length} files`);
console.log(`styles      ${sum(styles).toFixed(1)} kB gzip`);
if (kb > BUDGET_KB) {
  console.error(`The page's initial JavaScript is over its budget of ${BUDGET_KB} kB.`);
  process.exit(1);
}
