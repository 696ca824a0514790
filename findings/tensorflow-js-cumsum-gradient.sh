#!/usr/bin/env bash
# @tensorflow/tfjs 4.22.0: the gradient of cumsum is transposed, unless the sum runs along the last axis.
#
# One would guess: the gradient of a running sum is the running sum of what comes from above, taken from the other
# end along the same axis; each place of it belongs to the same place of the input.
# What happens: the gradient function calls cumsum of the public interface, which swaps the axis to the end
# and back by itself, and then swaps the axes once more. Along axis 0 of a square matrix, or axis 1 of
# batch x n x n values, the gradient of row i and column j arrives at row j and column i, without an error;
# a model trains on it. Along axis 0 of three axes of the same length they are rotated. If the lengths differ,
# there is an error about the gradient's shape. Along the last axis all is right.
# A running sum is linear, so that adding 1 to one value changes the weighted sum by exactly that value's gradient.
# Source: @tensorflow/tfjs-core 4.22.0, src/gradients/Cumsum_grad.ts (cumsumGradConfig).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@tensorflow/tfjs": "4.22.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const tf = require("@tensorflow/tfjs");
tf.env().set("IS_TEST", true); // no hint at other packages

// compare prints the gradient of a sum of the values of cumsum, weighted by 1, 2, 3 …, and the exact differences.
function compare(shape, axis) {
  const size = shape.reduce((a, b) => a * b);
  const weights = tf.tensor(Array.from({length: size}, (_, i) => i + 1), shape);
  const loss = x => tf.sum(tf.mul(tf.cumsum(x, axis), weights));
  const at = i => loss(tf.tensor(Array.from({length: size}, (_, k) => k === i ? 1 : 0), shape)).arraySync();
  const right = Array.from({length: size}, (_, i) => at(i) - at(-1));
  let gradient;
  try {
    gradient = Array.from(tf.grad(loss)(tf.zeros(shape)).dataSync());
  } catch (error) {
    gradient = [error.message];
  }
  console.log(`shape ${shape.join(" x ")}, along axis ${axis}: ${gradient.join(" ")} (right: ${right.join(" ")})`);
  return gradient.join() === right.join() ? "right" : gradient.length === size ? "wrong" : "error";
}

(async () => {
  await tf.setBackend("cpu");
  console.log(`tfjs ${tf.version.tfjs}, backend ${tf.getBackend()}`);
  const results = [compare([2, 2], 1), compare([2, 2], 0), compare([3, 3], 0), compare([2, 2, 2], 1), compare([2, 2, 2], 0),
    compare([3, 2], 0)];
  if (results.join() !== "right,wrong,wrong,wrong,wrong,error") {
    console.log("the behaviour has changed");
    process.exit(1);
  }
})();
JS
node main.cjs
