#!/usr/bin/env bash
# numeric 1.2.6 (numeric.js): the eigenvectors of the identity are all the same one.
#
# One would guess: a symmetric matrix of n rows has n independent eigenvectors, whether eigenvalues are equal or
# not; those of a diagonal matrix are the axes, and E·Λ·E⁻¹ is the matrix again.
# What happens: where an eigenvalue is equal to an earlier one, the earlier one's vector is copied. Of the identity
# of order 3, all three vectors are (1, 0, 0); of diag(2, 2, 3) the second axis is missing. The matrix of the
# vectors is singular. A graph of several components, whose Laplacian has the eigenvalue 0 once for each, gets the
# vector of one component only; columns with equal variances and no correlation get one principal component twice.
# Where rounding makes the eigenvalues differ a little, the vectors are independent, so that the result depends on
# chance.
# Source: numeric 1.2.6, numeric-1.2.6.js (numeric.eig, the loop that sets E).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"numeric": "1.2.6"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const numeric = require("numeric");

// A graph of two components, 1–2 and 3–4: its Laplacian has the eigenvalues 0, 0, 2 and 2.
const laplacian = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]];
console.log(`numeric ${require("numeric/package.json").version}`);
const determinants = [];
for (const [name, matrix] of [["identity", numeric.identity(3)], ["diag(2, 2, 3)", numeric.diag([2, 2, 3])],
  ["Laplacian", laplacian], ["diag(1, 2, 3)", numeric.diag([1, 2, 3])]]) {
  const {lambda, E} = numeric.eig(matrix);
  const determinant = numeric.det(E.x);
  determinants.push(determinant);
  console.log(`${name}: eigenvalues ${lambda.x.map(v => +v.toFixed(12)).join(" ")}; vectors ` +
    numeric.transpose(E.x).map(v => `(${v.map(c => +c.toFixed(3)).join(", ")})`).join(" ") + `; determinant ${determinant.toFixed(3)}`);
}
const singular = determinants.slice(0, 3).every(d => Math.abs(d) < 1e-12);
if (!singular || Math.abs(Math.abs(determinants[3]) - 1) > 1e-12) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs
