#!/usr/bin/env bash
# @stdlib/stats-base-dists-discrete-uniform-quantile 0.3.1: the largest value of a die is 7, and no quantile at a
# step of the distribution function is the value at which it steps.
#
# One would guess: the quantile of p is the smallest value at which the distribution function reaches p, as in R
# and SciPy and as the same library's Poisson and binomial quantiles have it: for the numbers 1 to 6 it is 6 for p
# = 1, and 3 for p = 1/2, as half of all throws are at most 3.
# What happens: it is a + ⌊p·n⌋ for n values from a on. The quantile of 1 is 7, a value that does not occur, and to
# which the same library's cdf and pmf give the probabilities 1 and 0; that of 1/2 is 4, at which the distribution
# function is 2/3. The formula is in the documentation, but it is that for drawing from p < 1, not that of the
# quantile function, to whose definition the documentation links. Between the steps the result is right.
# Source: @stdlib/stats-base-dists-discrete-uniform-quantile 0.3.1, lib/main.js (quantile).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >package.json <<'JSON'
{"private": true, "dependencies": {
  "@stdlib/stats-base-dists-discrete-uniform-quantile": "0.3.1",
  "@stdlib/stats-base-dists-discrete-uniform-cdf": "0.3.1",
  "@stdlib/stats-base-dists-discrete-uniform-pmf": "0.3.2",
  "@stdlib/stats-base-dists-binomial-quantile": "0.2.3"
}}
JSON
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const quantile = require("@stdlib/stats-base-dists-discrete-uniform-quantile");
const cdf = require("@stdlib/stats-base-dists-discrete-uniform-cdf");
const pmf = require("@stdlib/stats-base-dists-discrete-uniform-pmf");
const binomial = require("@stdlib/stats-base-dists-binomial-quantile");

// smallest returns the definition's value: the smallest x from 1 to 6 whose cdf is at least p.
const smallest = p => [1, 2, 3, 4, 5, 6].find(x => cdf(x, 1, 6) >= p);

console.log(`discrete-uniform-quantile ${require("@stdlib/stats-base-dists-discrete-uniform-quantile/package.json").version}`);
for (const p of [0.1, 0.25, 0.5, 0.9, 1])
  console.log(`a die, p = ${p}: ${quantile(p, 1, 6)} (right: ${smallest(p)})`);
console.log(`cdf(7) = ${cdf(7, 1, 6)}, pmf(7) = ${pmf(7, 1, 6)}, cdf(3) = ${cdf(3, 1, 6)}`);
console.log(`one toss of a coin by the binomial quantile, p = 0.5 and 1: ${binomial(0.5, 1, 0.5)} ${binomial(1, 1, 0.5)}, ` +
  `by the discrete uniform one: ${quantile(0.5, 0, 1)} ${quantile(1, 0, 1)}`);
const right = [0.1, 0.25, 0.9].every(p => quantile(p, 1, 6) === smallest(p));
if (!right || quantile(1, 1, 6) !== 7 || quantile(0.5, 1, 6) !== 4 || pmf(7, 1, 6) !== 0) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
