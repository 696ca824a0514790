// Package simclr is contrastive learning of images: the random views of an
// image, two of which make a positive pair, the pretraining of a network with
// them, and the evaluation of what it has learnt.
//
// An Augmentation draws views as the paper does (Paper) or otherwise, and also
// prepares images as they are, for evaluation. A view is a function of the
// seed, the epoch, the image's row and the view's number alone (ViewStream),
// so that any core may draw it at any time, and a resumed run sees the views
// that the uninterrupted one would have seen. Grid draws images beside their
// views, to look at.
//
// A Pretraining, such as the paper's (PaperPretraining), runs train.Fit on a
// graph whose edges join the two views of each image. The views of the next
// batch are drawn while the network computes; labels are never read. What
// comes out is a Network, which may also be looked at while it trains, from a
// hook.
//
// What a network has learnt is measured on its frozen representations
// (Features) by an Evaluation, on the published split or on stratified ones:
// with KNNAccuracy, which lets the nearest training images by cosine vote, and
// with a Logistic, the linear probe. A Monitor does the former while a network
// is trained. Pixels are the features to compare with. Evaluation reads labels
// and changes no network.
//
// Not here: reading images from files, and the network itself (model.ResNet).
package simclr
