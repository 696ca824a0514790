#!/usr/bin/env bash
# @tensorflow/tfjs 4.22.0: an image turned by 180° about its centre is moved by one pixel, and loses a row and a
# column.
#
# One would guess: image.rotateWithOffset turns "the image around its center" by default, so that a square image
# turned by half or by a quarter keeps all its pixels, and four quarters give it back.
# What happens: the centre is taken at half the width and height, but pixels are counted from 0, so that the middle
# of 3 x 3 is at 1, and not at 1.5. Turned by 180°, 1 to 9 are 0 0 0, 0 9 8, 0 6 5, where 9 8 7, 6 5 4, 3 2 1 is
# right; after four quarter turns there is a border of zeros. By small angles the shift is small, but never none.
# Augmented images drift to one side, and labels of boxes do not fit any more. With the centre (n − 1)/2n all is
# right.
# Source: @tensorflow/tfjs-core 4.22.0, src/ops/rotate_util.ts (getImageCenter), with @tensorflow/tfjs-backend-cpu
# 4.22.0, src/kernels/RotateWithOffset.ts.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@tensorflow/tfjs": "4.22.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const tf = require("@tensorflow/tfjs");
tf.env().set("IS_TEST", true); // no hint at other packages

(async () => {
  await tf.setBackend("cpu");
  console.log(`tfjs ${tf.version.tfjs}, backend ${tf.getBackend()}`);
  const image = tf.tensor4d([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 3, 3, 1]);
  const show = x => x.reshape([3, 3]).arraySync().map(row => row.join(" ")).join(", ");
  const half = show(tf.image.rotateWithOffset(image, Math.PI));
  const corrected = show(tf.image.rotateWithOffset(image, Math.PI, 0, 1 / 3));
  let turned = image;
  for (let i = 0; i < 4; i++) turned = tf.image.rotateWithOffset(turned, Math.PI / 2);
  console.log(`the image: ${show(image)}`);
  console.log(`by 180°: ${half} (right: ${show(image.reverse([1, 2]))})`);
  console.log(`by 180° about 1/3: ${corrected}`);
  console.log(`by 90°, four times: ${show(turned)} (right: ${show(image)})`);
  if (half !== "0 0 0, 0 9 8, 0 6 5" || corrected !== "9 8 7, 6 5 4, 3 2 1" || show(turned) === show(image)) {
    console.log("the behaviour has changed");
    process.exit(1);
  }
})();
JS
node main.cjs
