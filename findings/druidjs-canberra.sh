#!/usr/bin/env bash
# @saehrimnir/druidjs 0.9.0: two metrics are other functions from 1024 coordinates on; below, one is NaN where both
# points have a 0, and the other is negative.
#
# One would guess: a metric of two vectors is the same formula for each length, so that a last coordinate of 0 in
# both changes nothing; a distance is at least 0. Two zeros add nothing to Canberra's sum, as in SciPy, R and
# Wikipedia.
# What happens: up to 1023 coordinates they are computed in JavaScript, from 1024 on in WebAssembly. Canberra's
# distance divides 0 by 0 in JavaScript and is NaN; WebAssembly skips such coordinates. The denominator of Bray and
# Curtis is the sum of a + b in JavaScript and of |a + b|, as in SciPy, in WebAssembly: values around 0 have a
# distance of −204.3 with 1023 coordinates and of 1.159 with 1024. Sparse data, and images with black borders, have
# zeros in both; standardised columns have sums near 0. No error is thrown.
# Source: @saehrimnir/druidjs 0.9.0, src/metrics/canberra.js, bray_curtis.js and their .wasm.js;
# src/wasm/thresholds.js.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@saehrimnir/druidjs": "0.9.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.mjs <<'JS'
import {bray_curtis, canberra, manhattan} from "@saehrimnir/druidjs";

// Values around 0, and as many of the same with every third 0 in both.
const a = Array.from({length: 1023}, (_, i) => Math.sin(i * i));
const b = Array.from({length: 1023}, (_, i) => Math.cos(3 * i * i));
const thin = values => values.map((v, i) => i % 3 ? v : 0);

console.log(`druidjs ${process.argv[2]}`);
function both(name, metric, x, y) {
  const short = metric(x, y), long = metric([...x, 0], [...y, 0]);
  console.log(`${name}: ${short.toFixed(4)} with 1023 coordinates, ${long.toFixed(4)} with one more, which is 0`);
  return [short, long];
}
const sum = (x, y, f) => x.reduce((s, v, i) => s + f(v, y[i]), 0);
const [m1, m2] = both("Manhattan", manhattan, a, b);
const [p1, p2] = both("Canberra of values without zeros", canberra, a.map(v => v + 2), b.map(v => v + 2));
const [c1, c2] = both("Canberra of values with zeros", canberra, thin(a), thin(b));
const [d1, d2] = both("Bray and Curtis of values around 0", bray_curtis, a, b);
const right = sum(a, b, (v, w) => Math.abs(v - w)) / sum(a, b, (v, w) => Math.abs(v + w));
console.log(`Bray and Curtis with absolute values, as SciPy has it: ${right.toFixed(4)}`);
if (Math.abs(m1 - m2) > 1e-9 || !isNaN(c1) || isNaN(c2) || d1 >= 0 && d1 <= 1 || Math.abs(d2 - right) > 1e-9) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.mjs "$(node -p 'require("./node_modules/@saehrimnir/druidjs/package.json").version')"
