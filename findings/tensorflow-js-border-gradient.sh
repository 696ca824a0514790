#!/usr/bin/env bash
# @tensorflow/tfjs 4.22.0: the gradients of mirrorPad, of avgPool at the border, and of resizing with half-pixel
# centres are not those of what the forward pass computes.
#
# One would guess: a gradient says by how much the result changes with each value.
# What happens: mirrorPad copies values to the border, but its gradient is that of a padding with zeros:
# copies do not count. avgPool with padding divides by the number of values in the window, two of three at the
# end of a row, but its gradient divides by three everywhere, so that values near the border get too little.
# resizeNearestNeighbor and resizeBilinear with halfPixelCenters take other pixels than without, but the gradients
# do not know the option. avgPool3d is like avgPool. There is no error. Networks that pad images by reflection, or
# have averagePooling2d layers with the padding "same", are trained with wrong gradients along the borders.
# All four functions are linear: adding 1 to one value changes the sum by exactly that value's gradient.
# Source: @tensorflow/tfjs-core 4.22.0, src/gradients/MirrorPad_grad.ts; @tensorflow/tfjs-backend-cpu 4.22.0,
# src/kernels/AvgPoolGrad.ts, ResizeNearestNeighborGrad.ts and ResizeBilinearGrad.ts.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@tensorflow/tfjs": "4.22.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const tf = require("@tensorflow/tfjs");
tf.env().set("IS_TEST", true); // no hint at other packages

// wrong prints the gradient of the sum of f's values, weighted by 1, 2, 3 …, and the exact differences.
function wrong(name, shape, f) {
  const size = shape.reduce((a, b) => a * b);
  const at = i => tf.tensor(Array.from({length: size}, (_, k) => k === i ? 1 : 0), shape);
  const weights = tf.range(1, f(at(0)).size + 1);
  const loss = x => tf.sum(tf.mul(tf.reshape(f(x), [-1]), weights));
  const right = Array.from({length: size}, (_, i) => loss(at(i)).arraySync() - loss(at(-1)).arraySync());
  const gradient = Array.from(tf.grad(loss)(at(-1)).dataSync());
  const print = v => v.map(x => +x.toFixed(3)).join(" ");
  console.log(`${name}: ${print(gradient)} (right: ${print(right)})`);
  return gradient.some((v, i) => Math.abs(v - right[i]) > 0.1);
}

(async () => {
  await tf.setBackend("cpu");
  console.log(`tfjs ${tf.version.tfjs}, backend ${tf.getBackend()}; gradients`);
  const row = [1, 1, 4, 1];
  const square = [1, 2, 2, 1];
  const nearest = half => x => tf.image.resizeNearestNeighbor(x, [3, 3], false, half);
  const bilinear = half => x => tf.image.resizeBilinear(x, [3, 3], false, half);
  const bad = [
    wrong("mirrorPad of 4 values by 2, reflect", [4], x => tf.mirrorPad(x, [[2, 2]], "reflect")),
    wrong("mirrorPad of 4 values by 2, symmetric", [4], x => tf.mirrorPad(x, [[2, 2]], "symmetric")),
    wrong("avgPool of 4 values, window 3, same", row, x => tf.avgPool(x, [1, 3], 1, "same")),
    wrong("resizeNearestNeighbor 2 x 2 to 3 x 3, half pixels", square, nearest(true)),
    wrong("resizeBilinear 2 x 2 to 3 x 3, half pixels", square, bilinear(true)),
  ];
  const good = [
    wrong("pad of 4 values by 2", [4], x => tf.pad(x, [[2, 2]])),
    wrong("avgPool of 4 values, window 3, valid", row, x => tf.avgPool(x, [1, 3], 1, "valid")),
    wrong("resizeNearestNeighbor 2 x 2 to 3 x 3", square, nearest(false)),
    wrong("resizeBilinear 2 x 2 to 3 x 3", square, bilinear(false)),
  ];
  if (bad.includes(false) || good.includes(true)) {
    console.log("the behaviour has changed");
    process.exit(1);
  }
})();
JS
node main.cjs
