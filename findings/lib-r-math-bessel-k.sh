#!/usr/bin/env bash
# lib-r-math.js 2.0.3: BesselK is BesselI.
#
# One would guess: BesselK(x, ν) is the modified Bessel function that falls towards 0, as in R, of which the
# package is a port and whose documentation it repeats: K₀(1) = 0.4210, K₀(100) = 4.7·10^-45.
# What happens: the name is bound to the function that grows: 1.266 and 1.07·10^42. The two exports are the same
# function, the real one is in the package but cannot be reached by a documented name. It matters for Matérn
# covariances, Bessel filters and diffusion, where K is the one that is used. There is no error, and for small x
# the numbers look harmless.
# Values are compared with K_½(x) = √(π/2x)·e^−x, which is exact, and with the integral of exp(−x·cosh t) over t.
# Source: lib-r-math.js 2.0.3, lib/special/bessel/index (BesselK is exported from besselI).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"lib-r-math.js": "2.0.3"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const {BesselI, BesselK} = require("lib-r-math.js");

// integral returns K of order nu: the integral of exp(−x·cosh t)·cosh(nu·t) for t from 0 on.
function integral(x, nu) {
  let sum = Math.exp(-x) / 2;
  for (let i = 1; i < 100000; i++) sum += Math.exp(-x * Math.cosh(i / 10000)) * Math.cosh(nu * i / 10000);
  return sum / 10000;
}

console.log(`lib-r-math.js ${process.argv[2]}`);
let same = true, sound = true;
for (const [x, nu] of [[0.1, 0], [1, 0], [1, 0.5], [5, 1], [100, 0]]) {
  const k = BesselK(x, nu), right = integral(x, nu);
  console.log(`BesselK(${x}, ${nu}) = ${k.toPrecision(6)}, BesselI ${BesselI(x, nu).toPrecision(6)} (right: ${right.toPrecision(6)})`);
  same = same && k === BesselI(x, nu);
  if (nu === 0.5) sound = Math.abs(right / (Math.sqrt(Math.PI / 2 / x) * Math.exp(-x)) - 1) < 1e-6;
}
if (!same || !sound || BesselK(100, 0) < 1e40) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs "$(node -p 'JSON.parse(require("fs").readFileSync("node_modules/lib-r-math.js/package.json")).version')"
