// Draws a Vega-Lite specification, whose data are in it, as Kibana does, without a
// browser. Reads JSON {spec, out} from standard input, writes the picture to out,
// and prints {marks: how many are drawn, warnings}.
import { readFileSync, writeFileSync } from "node:fs";
import * as vega from "vega";
import * as lite from "vega-lite";

const { spec, out } = JSON.parse(readFileSync(0, "utf8"));
const warnings = [];
const logger = {
  level: () => logger,
  error: (...a) => (warnings.push(a.join(" ")), logger),
  warn: (...a) => (warnings.push(a.join(" ")), logger),
  info: () => logger,
  debug: () => logger,
};
const compiled = lite.compile(spec, { logger }).spec;
const view = new vega.View(vega.parse(compiled), { renderer: "none", logger });
await view.runAsync();
let marks = 0;
const count = (node) => {
  for (const item of node.items ?? []) {
    if (node.role === "mark" && node.marktype !== "group") marks++;
    count(item);
  }
};
count(view.scenegraph().root);
writeFileSync(out, await view.toSVG());
console.log(JSON.stringify({ marks, warnings }));
