// Package simclr holds what contrastive learning of images needs and points
// do not: the random views of an image, two of which make a positive pair.
//
// An Augmentation draws views as the paper does (Paper) or otherwise, and also
// prepares images as they are, for evaluation. A view is a function of the
// seed, the epoch, the image's row and the view's number alone (ViewStream),
// so that any core may draw it at any time, and a resumed run sees the views
// that the uninterrupted one would have seen. Grid draws images beside their
// views, to look at.
//
// Not here: reading images from files, the network, pretraining, and the
// evaluation of what is learnt.
package simclr
