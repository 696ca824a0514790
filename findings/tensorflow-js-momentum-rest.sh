#!/usr/bin/env bash
# @tensorflow/tfjs 4.22.0: the running means of the optimizers never return to 0 once a parameter has no gradient.
#
# One would guess: a running mean that is multiplied by 0.9 in every step underflows to 0 after about 1000 steps, so that
# the parameter of a unit that has died, or of an input that does not occur any more, comes to rest.
# What happens: it stops at 5.6e-45, four times the smallest number of float32. 0.9 times that is 3.6 times the smallest
# number, which is rounded to 4 times again, in this step and all that follow. That is true of the velocity of momentum,
# of Adam's mean of gradients, of RMSProp's mean of squares, and of both of Adadelta's. With a factor of 0.99 the rest is
# 50 times the smallest number. Such numbers are subnormal: processors that do not flush them to 0 are several times
# slower with them, for the rest of the training, and a test of "is it zero" says no. A saved optimizer has them, too.
# Source: @tensorflow/tfjs-core 4.22.0, src/optimizers/momentum_optimizer.ts, adam_optimizer.ts, rmsprop_optimizer.ts,
# adadelta_optimizer.ts (applyGradients: the sum of a product with the factor and one with the gradient).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"@tensorflow/tfjs": "4.22.0"}}' >package.json
npm install --silent --ignore-scripts >/dev/null 2>&1
cat >main.cjs <<'JS'
const tf = require("@tensorflow/tfjs");
tf.env().set("IS_TEST", true); // no hint at other packages

// rest gives a parameter a gradient of 1 once and of 0 in 10 000 more steps, and returns what is left of its running
// means, as multiples of the smallest number of float32.
async function rest(name, optimizer, chosen) {
  tf.variable(tf.tensor1d([1]), true, name);
  optimizer.applyGradients([{name, tensor: tf.tensor1d([1])}]);
  for (let step = 0; step < 10000; step++) {
    optimizer.applyGradients([{name, tensor: tf.tensor1d([0])}]);
  }
  const left = (await optimizer.getWeights()).filter(w => chosen.some(end => w.name.endsWith(end)));
  const multiples = left.map(w => w.tensor.dataSync()[0] / 2 ** -149);
  left.forEach((w, i) => console.log(`${w.name} after 10 000 steps without a gradient: ${w.tensor.dataSync()[0]}, ` +
    `${multiples[i]} times the smallest number`));
  return multiples;
}

(async () => {
  await tf.setBackend("cpu");
  console.log(`tfjs ${tf.version.tfjs}, backend ${tf.getBackend()}`);
  const found = [
    await rest("velocity", tf.train.momentum(0.01, 0.9), ["/momentum"]),
    await rest("slow", tf.train.momentum(0.01, 0.99), ["/momentum"]),
    await rest("adam", tf.train.adam(0.01), ["/m"]),
    await rest("rmsprop", tf.train.rmsprop(0.01, 0.9), ["/rms"]),
    await rest("adadelta", tf.train.adadelta(0.01, 0.9), ["/accum_grad", "/accum_var"]),
  ].flat();
  if (found.join() !== "4,50,4,4,4,4") {
    console.log("the behaviour has changed");
    process.exit(1);
  }
})();
JS
node main.cjs
