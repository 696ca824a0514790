#!/usr/bin/env bash
# @stdlib/math-base-special-gammainc 0.3.1: beyond 1000 the incomplete gamma function is wrong in the second digit,
# and with it the distributions of chi-square and Poisson with large parameters.
#
# One would guess: the library for numerical computing gives a distribution function to many digits, as it does for
# small parameters; it never falls as x grows.
# What happens: for x above 1000, unless the parameter is much larger, another series is used, in powers of a/x,
# and it begins with the factor a/x where (a − 1)/x is right (DLMF 8.11.2). The probability that a Poisson variable
# of mean 1001 is at most 1001 is said to be 0.5215 (right: 0.5084). The distribution function of chi-square with
# 2002 degrees of freedom falls from 0.4916 at 2000 to 0.4850 at 2001, where 0.4979 is right. Quantiles, which
# invert it, inherit the error. Up to x = 1000 twelve digits are right. There is no warning.
# The values are compared with the finite sum that both have for whole numbers, Q(n, x) = Σ x^k·e^−x/k!, k < n.
# Source: @stdlib/math-base-special-gammainc 0.3.1, lib/tgamma_i_large_x_series.js and lib/igamma_final.js.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >package.json <<'JSON'
{"private": true, "dependencies": {
  "@stdlib/math-base-special-gammainc": "0.3.1",
  "@stdlib/stats-base-dists-chisquare-cdf": "0.3.1",
  "@stdlib/stats-base-dists-poisson-cdf": "0.3.1"
}}
JSON
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const gammainc = require("@stdlib/math-base-special-gammainc");
const chisquare = require("@stdlib/stats-base-dists-chisquare-cdf");
const poisson = require("@stdlib/stats-base-dists-poisson-cdf");

// upper returns the sum of the Poisson probabilities of 0 to n − 1 for the mean x.
function upper(n, x) {
  let sum = 0, logarithm = -x;
  for (let k = 0; k < n; k++) {
    sum += Math.exp(logarithm);
    logarithm += Math.log(x / (k + 1));
  }
  return sum;
}

console.log(`gammainc ${require("@stdlib/math-base-special-gammainc/package.json").version}`);
const errors = {};
for (const [name, got, right] of [
  ["chi-square, 2002 degrees of freedom, 1998", chisquare(1998, 2002), 1 - upper(1001, 999)],
  ["chi-square, 2002 degrees of freedom, 2000", chisquare(2000, 2002), 1 - upper(1001, 1000)],
  ["chi-square, 2002 degrees of freedom, 2001", chisquare(2001, 2002), 1 - upper(1001, 1000.5)],
  ["Poisson of mean 999, at most 999", poisson(999, 999), upper(1000, 999)],
  ["Poisson of mean 1001, at most 1001", poisson(1001, 1001), upper(1002, 1001)],
  ["gammainc(1510, 1500)", gammainc(1510, 1500), 1 - upper(1500, 1510)],
]) {
  errors[name] = Math.abs(got - right);
  console.log(`${name}: ${got.toFixed(6)} (right: ${right.toFixed(6)})`);
}
const e = Object.values(errors);
const right = e[0] < 1e-9 && e[1] < 1e-9 && e[3] < 1e-9;
if (!right || e[2] < 0.005 || e[4] < 0.005 || e[5] < 0.005) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
