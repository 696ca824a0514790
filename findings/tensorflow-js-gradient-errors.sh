#!/usr/bin/env bash
# @tensorflow/tfjs 4.22.0: six functions that work forwards have gradients that throw, where an operand is
# broadcast or optional, or an image is not square.
#
# One would guess: what is broadcast in the forward pass gets the sum over what it was broadcast to as its
# gradient, as with add and mul; an optional argument may be left out of a function that is differentiated; images
# may be 2 x 3.
# What happens: squaredDifference, maximum, minimum and matMul return a gradient in the broadcast shape, and the
# engine throws, as it "does not match the shape of the input": a row of centres cannot be learned by its squared
# distances to the rows of a matrix, nor one weight matrix for a batch. batchNorm without scale and offset, which
# are optional, and with one of them alone, throws "Cannot read properties of undefined". resizeBilinear's gradient
# on the CPU has height and width swapped, so that it throws unless they are equal. add, and resizeNearestNeighbor,
# are right.
# Source: @tensorflow/tfjs-core 4.22.0, src/gradients/SquaredDifference_grad.ts, Maximum_grad.ts, Minimum_grad.ts,
# BatchMatMul_grad.ts and FusedBatchNorm_grad.ts; @tensorflow/tfjs-backend-cpu 4.22.0,
# src/kernels/ResizeBilinearGrad.ts.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@tensorflow/tfjs": "4.22.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const tf = require("@tensorflow/tfjs");
tf.env().set("IS_TEST", true); // no hint at other packages

// attempt prints the sum of f(x) and its gradient, or the error; it returns whether there was an error behind a sound sum.
function attempt(name, f, x) {
  const value = tf.sum(f(x)).arraySync();
  let gradient, failed = false;
  try {
    gradient = JSON.stringify(tf.grad(x => tf.sum(f(x)))(x).arraySync());
  } catch (error) {
    failed = true;
    gradient = error.message;
  }
  console.log(`${name}: sum ${value.toFixed(3)}, gradient ${gradient}`);
  return failed && isFinite(value);
}

(async () => {
  await tf.setBackend("cpu");
  console.log(`tfjs ${tf.version.tfjs}, backend ${tf.getBackend()}`);
  const matrix = tf.tensor2d([[1, 2, 3], [4, 5, 6]]), row = tf.tensor1d([2, 2, 9]), ones = tf.tensor1d([1, 1, 1]);
  const image = tf.tensor4d([1, 2, 3, 4, 5, 6], [1, 2, 3, 1]), square = tf.tensor4d([1, 2, 3, 4], [1, 2, 2, 1]);
  const sound = [
    attempt("add, a row", x => tf.add(matrix, x), row),
    attempt("batchNorm with scale and offset", x => tf.batchNorm(x, row, ones, ones, ones), matrix),
    attempt("resizeBilinear of 2 x 2", x => tf.image.resizeBilinear(x, [4, 6]), square),
    attempt("resizeNearestNeighbor of 2 x 3", x => tf.image.resizeNearestNeighbor(x, [4, 6]), image),
  ];
  const broken = [
    attempt("squaredDifference, a row", x => tf.squaredDifference(matrix, x), row),
    attempt("maximum, a row", x => tf.maximum(matrix, x), row),
    attempt("minimum, a row", x => tf.minimum(matrix, x), row),
    attempt("matMul, one matrix for a batch of two", x => tf.matMul(tf.ones([2, 1, 2]), x), tf.ones([2, 3])),
    attempt("batchNorm", x => tf.batchNorm(x, row, ones), matrix),
    attempt("batchNorm with scale", x => tf.batchNorm(x, row, ones, null, ones), matrix),
    attempt("resizeBilinear of 2 x 3", x => tf.image.resizeBilinear(x, [4, 6]), image),
  ];
  if (sound.includes(true) || broken.includes(false)) {
    console.log("the behaviour has changed");
    process.exit(1);
  }
})();
JS
node main.cjs
