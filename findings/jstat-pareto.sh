#!/usr/bin/env bash
# jstat 1.9.6: the median of a Pareto distribution rises with its shape where it should fall, and the mean is right
# for the scale 1 only.
#
# One would guess: the median is the value at which the distribution function is 1/2, scale·2^(1/shape); the mean
# is shape·scale/(shape − 1), and doubles with the scale, as a mean of money in cents and in euros must.
# What happens: the median is scale·shape·√2, a product instead of a root: 4.24 for the scale 1 and the shape 3,
# where the same library's cdf is 0.987, and inv(0.5) is 1.26. The mean has the scale to the power of the shape:
# for the shape 3 it is 1500 instead of 15 for the scale 10, and 0.0015 instead of 0.15 for the scale 0.1, below
# the smallest value that occurs. cdf, inv, mode and variance are right. There is no error.
# Source: jstat 1.9.6, src/distribution.js (jStat.pareto).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"jstat": "1.9.6"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const {jStat} = require("jstat");

// mean returns the mean of the quantiles of many evenly spaced probabilities.
function mean(scale, shape) {
  let sum = 0;
  for (let i = 0; i < 1e6; i++) sum += jStat.pareto.inv((i + 0.5) / 1e6, scale, shape);
  return sum / 1e6;
}

console.log(`jstat ${require("jstat/package.json").version}`);
const got = {};
for (const [scale, shape] of [[1, 3], [1, 10], [10, 3], [0.1, 3]]) {
  const p = jStat.pareto;
  const median = p.median(scale, shape), average = p.mean(scale, shape);
  got[[scale, shape]] = [median, average];
  console.log(`scale ${scale}, shape ${shape}: median ${median.toFixed(4)} (right: ${(scale * 2 ** (1 / shape)).toFixed(4)}, ` +
    `cdf there ${p.cdf(median, scale, shape).toFixed(4)}), mean ${average.toFixed(4)} (right: ` +
    `${(scale * shape / (shape - 1)).toFixed(4)}, of a million quantiles ${mean(scale, shape).toFixed(4)})`);
}
const close = (a, b) => Math.abs(a - b) < 1e-9;
if (!close(got["1,3"][0], 3 * Math.SQRT2) || !close(got["1,3"][1], 1.5) || !close(got["10,3"][1], 1500)) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
