/**
 * Take out of package-lock.json what names hosts: download addresses, should there be any, and
 * where a package asks for money. `npm ci` needs neither. Run by `npm run lock`.
 */

import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
for (const entry of Object.values(lock.packages)) {
  delete entry.resolved;
  delete entry.funding;
}
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
