#!/usr/bin/env bash
# @stdlib/stats-base-dists-poisson-entropy 0.2.3: the entropy of a Poisson distribution is infinite from a mean of
# 79 on.
#
# One would guess: the entropy grows slowly, as half the logarithm of 2πe times the mean: 3.72 for a mean of 100,
# 4.53 for 500.
# What happens: the series in the entropy's definition is added up without its factor e^−λ. Its terms are
# λ^k·log(k!)/k!, where λ^k and k! are computed on their own; for a mean of 78 the result is right, from 79 on λ^k
# exceeds all numbers before the terms have become small, and the result is Infinity; for a mean of 3000 it is NaN.
# No probability is extreme there: counts of 100 are everyday.
# Source: @stdlib/stats-base-dists-poisson-entropy 0.2.3, lib/main.js (seriesClosure, entropy).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@stdlib/stats-base-dists-poisson-entropy": "0.2.3"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const entropy = require("@stdlib/stats-base-dists-poisson-entropy");

// definition returns −Σ p·log(p) over the probabilities of a Poisson distribution.
function definition(mean) {
  let sum = 0, logarithm = -mean;
  for (let k = 0; k < 10 * mean + 100; k++) {
    sum -= Math.exp(logarithm) * logarithm;
    logarithm += Math.log(mean / (k + 1));
  }
  return sum;
}

console.log(`poisson-entropy ${require("@stdlib/stats-base-dists-poisson-entropy/package.json").version}`);
const got = {};
for (const mean of [1, 50, 78, 79, 100, 500, 3000]) {
  got[mean] = entropy(mean);
  console.log(`mean ${mean}: ${got[mean].toFixed(4)} (right: ${definition(mean).toFixed(4)})`);
}
const right = [1, 50, 78].every(mean => Math.abs(got[mean] - definition(mean)) < 1e-6);
if (!right || got[79] !== Infinity || got[100] !== Infinity || got[500] !== Infinity || !isNaN(got[3000])) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
