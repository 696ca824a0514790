#!/usr/bin/env bash
# apache-arrow 21.2.0 (JavaScript): in a column of half-precision numbers 1.9999 becomes 1, 10^-8 becomes
# −Infinity, and 65536 becomes 2.
#
# One would guess: a number becomes the nearest one of the format (IEEE 754), as in NumPy and in Arrow's C++:
# 1.9999 is 2, what is below 2^-25 is 0, and what is at least 65520 is Infinity. Larger numbers do not become
# smaller ones.
# What happens: a mantissa that is rounded up to the next power of two is joined to the exponent by "or" instead of
# being added, so that its carry is lost with every other exponent: from 1.99951 on, 2 becomes 1; 0.49999 becomes
# 0.25. Of numbers below 2^-25 the mantissa is shifted by a negative count, which JavaScript takes modulo 32, and
# bits run into the exponent and sign: 10^-8 is −Infinity, 10^-300 is NaN. From 65536 on, only numbers whose
# mantissa has bits beyond the first 20, like 10^300, are Infinity; the others keep five bits of the exponent:
# 65536 is 2, 10^6 is 3.81. Nothing throws. vectorFromArray, builders and tables of such columns do so; gradients
# and probabilities are that small.
# Source: apache-arrow 21.2.0, util/math.js (float64ToUint16).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"apache-arrow": "21.2.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const arrow = require("apache-arrow");

// nearest returns the half-precision number that is nearest to x, the even one of two.
function nearest(x) {
  const size = Math.abs(x);
  if (size >= 65520) return Math.sign(x) * Infinity;
  const unit = 2 ** Math.max(Math.floor(Math.log2(size)) - 10, -24);
  let steps = Math.round(size / unit);
  if (steps - size / unit === 0.5 && steps % 2 === 1) steps--;
  return Math.sign(x) * steps * unit;
}

console.log(`apache-arrow ${process.argv[2]}`);
const values = [0.1, 1.5, 3.9999, 1e-7, 65504, 1e300, 1.9999, 0.49999, 1e-8, -1e-8, 1e-300, 65536, 1e5, 1e6];
const column = arrow.vectorFromArray(values, new arrow.Float16());
values.forEach((x, i) => console.log(`${x}: ${column.get(i)} (right: ${nearest(x)})`));
const right = values.slice(0, 6).every((x, i) => column.get(i) === nearest(x));
const wrong = [1, 0.25, -Infinity, -Infinity, NaN, 2, 3.05078125, 3.814453125];
if (!right || !wrong.every((x, i) => Object.is(column.get(6 + i), x))) {
  console.log("the behaviour has changed");
  process.exit(1);
}
JS
node main.cjs "$(node -p 'require("./node_modules/apache-arrow/package.json").version')"
