#!/usr/bin/env bash
# @saehrimnir/druidjs 0.9.0: MDS and ISOMAP do not keep distances; every axis of the map has the same length.
#
# One would guess: classical MDS of points in the plane gives these points back, turned or mirrored at most,
# since the distances between them determine them; ISOMAP does the same where all points are neighbours.
# What happens: the map's axes are the eigenvectors of the centred matrix of squared distances, with length 1,
# and are not multiplied by the roots of their eigenvalues. A grid of 9 x 3 points comes out as a square,
# with distances of 0.075 where 1 is right, and the method's own stress() is 0.905, where 0 can be reached.
# In a map of more axes the last, which may be nothing but noise, is as wide as the first. StressMDS of the
# same points has their distances. The class is documented to preserve pairwise distances as far as possible.
# Source: @saehrimnir/druidjs 0.9.0, src/dimred/MDS.js and src/dimred/ISOMAP.js (transform).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@saehrimnir/druidjs": "0.9.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.mjs <<'JS'
import * as druid from "@saehrimnir/druidjs";

const points = Array.from({length: 27}, (_, i) => [i % 9, Math.floor(i / 9)]);
const distance = (a, b) => Math.hypot(...a.map((v, k) => v - b[k]));
const size = map => [0, 1].map(k => Math.hypot(...map.map(row => row[k])));

function compare(name, parameters) {
  const method = new druid[name](points, {d: 2, ...parameters});
  const map = Array.from(method.transform(), row => Array.from(row));
  let worst = 0;
  for (const i in points) for (const j in points)
    worst = Math.max(worst, Math.abs(distance(points[i], points[j]) - distance(map[i], map[j])));
  console.log(`${name}: lengths of the axes ${size(map).map(v => v.toFixed(3)).join(" and ")}, ` +
    `neighbours at distance ${distance(map[0], map[1]).toFixed(3)}, largest error of a distance ${worst.toFixed(3)}`);
  if (method.stress) console.log(`${name}: stress() ${method.stress().toFixed(3)}`);
  return worst;
}

const centred = points.map(([x, y]) => [x - 4, y - 1]);
console.log(`druidjs ${process.argv[2]}; the points: lengths of the axes ${size(centred).map(v => v.toFixed(3)).join(" and ")}, neighbours at distance 1`);
const mds = compare("MDS", {});
const isomap = compare("ISOMAP", {neighbors: 26});
const stress = compare("StressMDS", {});
if (mds < 1 || isomap < 1 || stress > 0.01) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.mjs "$(node -p 'require("./node_modules/@saehrimnir/druidjs/package.json").version')"
