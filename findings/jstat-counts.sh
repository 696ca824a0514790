#!/usr/bin/env bash
# jstat 1.9.6: the Poisson distribution is not a number for large means, and the binomial's tail is rounded to ten
# decimals.
#
# One would guess: a distribution function is a number from 0 to 1, and small probabilities keep some digits.
# What happens: Poisson's probabilities are mean^k·e^−mean/k!, each factor on its own. For a mean of 200 the power
# is infinite from 134 on, and k! from 171 on: the probability of 180 counts is Infinity/Infinity, NaN, and so is
# the distribution function from there on, even at 1000, where it is 1. At 140 the probability is Infinity. The
# binomial's distribution function is rounded to a multiple of 10^-10 at the end: 10 heads of 100 tosses or fewer
# have the probability 0 instead of 1.5·10^-17, and 20 have 6·10^-10 instead of 5.58·10^-10. p-values are made of
# it. No error is thrown.
# Source: jstat 1.9.6, src/distribution.js (jStat.poisson.pdf, jStat.binomial.cdf).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"jstat": "1.9.6"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const {jStat} = require("jstat");

// poisson returns the probability of k counts by logarithms.
function poisson(k, mean) {
  let logarithm = -mean;
  for (let i = 1; i <= k; i++) logarithm += Math.log(mean / i);
  return Math.exp(logarithm);
}

// binomial returns the probability of k heads or fewer in n tosses of a coin, exactly but for the last division.
function binomial(k, n) {
  let choose = 1n, sum = 0n;
  for (let i = 0; i <= k; i++) {
    sum += choose;
    choose = choose * BigInt(n - i) / BigInt(i + 1);
  }
  return Number(sum) / 2 ** n;
}

console.log(`jstat ${require("jstat/package.json").version}`);
const pdf = {}, cdf = {};
for (const k of [100, 140, 180, 200]) {
  pdf[k] = jStat.poisson.pdf(k, 200);
  console.log(`Poisson of mean 200, probability of ${k}: ${pdf[k]} (right: ${poisson(k, 200).toPrecision(6)})`);
}
const far = jStat.poisson.cdf(1000, 200);
console.log(`Poisson of mean 200, at most 1000: ${far} (right: 1)`);
for (const k of [10, 20, 45]) {
  cdf[k] = jStat.binomial.cdf(k, 100, 0.5);
  console.log(`100 tosses, at most ${k} heads: ${cdf[k]} (right: ${binomial(k, 100).toPrecision(6)})`);
}
if (Math.abs(pdf[100] / poisson(100, 200) - 1) > 1e-9 || pdf[140] !== Infinity || !isNaN(pdf[180]) || !isNaN(far) ||
    cdf[10] !== 0 || Math.abs(cdf[20] - 6e-10) > 1e-16 || Math.abs(cdf[45] - binomial(45, 100)) > 1e-9) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
