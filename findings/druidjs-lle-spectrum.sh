#!/usr/bin/env bash
# @saehrimnir/druidjs 0.9.0: locally linear embedding returns the maps of the largest cost, not of the smallest.
#
# One would guess: LLE writes each point as a weighted mean of its neighbours, and finds the map whose points are
# closest to the same means of theirs: points along a curve come out in their order.
# What happens: the smallest eigenvectors of M = (I − W)ᵀ(I − W) are sought as the largest of c·I − M, where
# c should be at least M's largest eigenvalue. It is computed from the sum of M's entries; but the weights of
# a point add up to 1, so that this sum is 0 but for rounding. What is left is −M, whose eigenvalues of the
# largest size are M's largest. Sixty points along a helix change sides from each to the next, with a cost
# of 4 for a map of length 1, where their order has 2·10^-10. No error is returned, and the map of a cloud
# of points does not look broken.
# The cost is computed here from the weights of two neighbours each, a linear system of two equations.
# Source: @saehrimnir/druidjs 0.9.0, src/dimred/LLE.js (transform); Roweis and Saul, Science 290 (2000).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@saehrimnir/druidjs": "0.9.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.mjs <<'JS'
import * as druid from "@saehrimnir/druidjs";

const n = 60;
const points = Array.from({length: n}, (_, i) => [Math.cos(i / 20), Math.sin(i / 20), i / 200]);
const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);

// neighbours returns the two nearest points of point i and their weights in the mean nearest to it.
function neighbours(i) {
  const difference = j => points[j].map((v, k) => v - points[i][k]);
  const [a, b] = [...points.keys()].filter(j => j !== i)
    .sort((j, k) => dot(difference(j), difference(j)) - dot(difference(k), difference(k)));
  const [u, v] = [difference(a), difference(b)];
  const [wa, wb] = [dot(v, v) - dot(u, v), dot(u, u) - dot(u, v)]; // Cramer's rule
  return [[a, wa / (wa + wb)], [b, wb / (wa + wb)]];
}

// cost returns the sum of squared distances to the weighted means, of the map centred and of length 1.
function cost(map) {
  const mean = map.reduce((sum, v) => sum + v) / n;
  const centred = map.map(v => v - mean);
  const errors = centred.map((v, i) => v - neighbours(i).reduce((sum, [j, w]) => sum + w * centred[j], 0));
  return dot(errors, errors) / dot(centred, centred);
}

// turns counts the points at which the map changes its direction.
const turns = map => map.filter((v, i) => i > 1 && (v - map[i - 1]) * (map[i - 1] - map[i - 2]) < 0).length;

const order = points.map((_, i) => i);
const map = Array.from(druid.LLE.transform(points, {d: 1, neighbors: 2}), row => row[0]);
const more = Array.from(druid.LLE.transform(points, {d: 1, neighbors: 8}), row => row[0]);
console.log(`druidjs ${process.argv[2]}`);
console.log(`the points' order:   cost ${cost(order).toExponential(2)}, ${turns(order)} changes of direction`);
console.log(`LLE, 2 neighbours:   cost ${cost(map).toExponential(2)}, ${turns(map)} changes of direction`);
console.log(`LLE, 8 neighbours:   ${turns(more)} changes of direction`);
if (cost(map) < 1 || turns(map) < 5 || turns(more) < 5) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.mjs "$(node -p 'require("./node_modules/@saehrimnir/druidjs/package.json").version')"
