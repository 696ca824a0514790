#!/usr/bin/env bash
# chroma-js 3.2.0: colours mixed in HCG are black or white, and a colour's own HCG numbers do not give it back.
#
# One would guess: chroma(...color.hcg(), "hcg") is the colour again, as it is with HSL, HSV, Lab and the other
# models, and a mixture of red and blue in HCG is magenta, since the hue is halfway and both are pure.
# What happens: hcg() returns chroma and grayness from 0 to 100, but a colour is made from numbers from 0 to 1.
# What is made of 60, 87.45 and 100 has channels far below 0 and above 255, and is cut off to black or to colours
# that occur nowhere else. The mixture of two colours goes both ways, so that mix(…, "hcg") and
# scale(…).mode("hcg") are black between their ends, even at the ends themselves. Nothing throws.
# Source: chroma-js 3.2.0, src/io/hcg/rgb2hcg.js and hcg2rgb.js; src/interpolator/hcg.js.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"chroma-js": "3.2.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.mjs <<'JS'
import chroma from "chroma-js";

console.log(`chroma-js ${process.argv[2]}`);
const color = chroma(200, 150, 100);
const back = {};
for (const model of ["hsl", "hsv", "hsi", "lab", "oklch", "cmyk", "hcg"]) {
  back[model] = chroma(color[model](), model).hex();
  console.log(`${color.hex()} to ${model} and back: ${back[model]}`);
}
const [h, c, g] = color.hcg();
console.log(`hcg() gives ${[h, c, g].map(v => v.toFixed(2)).join(" ")}; with hundredths of the last two: ${chroma.hcg(h, c / 100, g / 100).hex()}`);
const hsv = [0, 0.5, 1].map(t => chroma.mix("tomato", "steelblue", t, "hsv").hex());
const hcg = [0, 0.5, 1].map(t => chroma.mix("tomato", "steelblue", t, "hcg").hex());
console.log(`tomato (${chroma("tomato").hex()}) to steelblue (${chroma("steelblue").hex()}): by HSV ${hsv.join(" ")}, by HCG ${hcg.join(" ")}`);
const {hcg: wrong, ...others} = back;
if (Object.values(others).some(hex => hex !== color.hex()) || wrong === color.hex() ||
    hsv[0] !== chroma("tomato").hex() || hcg[0] === chroma("tomato").hex()) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.mjs "$(node -p 'require("./node_modules/chroma-js/package.json").version')"
