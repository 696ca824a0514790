#!/usr/bin/env bash
# ml-pca 4.1.1: with the method NIPALS the explained variances always add up to 1, and the standard deviations grow
# with the number of rows.
#
# One would guess: the option "method" chooses how the components are computed, not what they are: NIPALS of the
# first two of six components gives the same two directions, variances and shares of the whole variance as SVD.
# What happens: the directions are the same. The share of a component is its part of the components that were
# computed, by default two: for six independent columns, where two components hold 37 %, they are said to explain
# 100 %, and one component alone always explains all. The eigenvalues are the sums of the squared scores, not
# divided by the number of rows less one as with the other two methods: with 500 rows they are 499 times too large,
# and getStandardDeviations() is 22 times the standard deviation of the scores that predict() returns. There is no
# error.
# Source: ml-pca 4.1.1, src/pca.ts (_computeWithNIPALS, getExplainedVariance, getStandardDeviations).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"ml-pca": "4.1.1"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const {PCA} = require("ml-pca");

// Six independent columns of 500 uniform numbers.
let state = 1;
const random = () => (state = state * 16807 % 2147483647) / 2147483647;
const rows = Array.from({length: 500}, () => Array.from({length: 6}, random));
const round = values => values.slice(0, 2).map(v => v.toFixed(3)).join(" ");

// results returns what a PCA says of its first two components, and what the scores of the rows say.
function results(options) {
  const pca = new PCA(rows, options);
  const scores = pca.predict(rows).to2DArray();
  const deviations = [0, 1].map(k => Math.sqrt(scores.reduce((sum, row) => sum + row[k] ** 2, 0) / (rows.length - 1)));
  const explained = pca.getExplainedVariance(), claimed = pca.getStandardDeviations();
  console.log(`${JSON.stringify(options)}: explained ${round(explained)}, standard deviations ${round(claimed)}` +
    `; those of the scores ${round(deviations)}`);
  return {sum: explained[0] + explained[1], ratio: claimed[0] / deviations[0]};
}

console.log(`ml-pca ${require("ml-pca/package.json").version}, the first two of six components`);
const svd = results({method: "SVD"});
const covariance = results({method: "covarianceMatrix"});
const nipals = results({method: "NIPALS", nCompNIPALS: 2});
const right = [svd, covariance].every(r => r.sum < 0.5 && Math.abs(r.ratio - 1) < 1e-6);
if (!right || Math.abs(nipals.sum - 1) > 1e-9 || Math.abs(nipals.ratio - Math.sqrt(499)) > 1e-3) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
