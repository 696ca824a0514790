// Package simclr implements contrastive learning of images (SimCLR). Two random views of
// an image make a positive pair. The package makes views, pretrains a network with them,
// and evaluates the network.
//
// An Augmentation draws views, such as the paper's (Paper), and also prepares images for
// evaluation, without randomness. A view depends only on the seed, the epoch, the image's
// row and the view's number (ViewStream), so any core can draw it at any time, and a
// resumed run sees the same views as an uninterrupted one.
//
// A Pretraining, such as the paper's (PaperPretraining), runs train.Fit on a graph whose
// edges join the two views of each image. The views of the next batch are drawn while the
// network computes; labels are never read. The result is a Network. A hook can also use
// it during training. In Stages, such as t-SimCNE's (TSimCNE), parts of the network are
// frozen and its output is replaced, so at the end it maps images to the plane
// (Projection).
//
// An Evaluation measures a network's frozen representations (Features), on the published
// split or on random splits: with KNNAccuracy, a kNN classifier with cosine distances, and
// with a Logistic, the linear probe. A Monitor measures KNNAccuracy during training.
// Pixels are features for comparison. Evaluation changes no network.
//
// Results have the same bits regardless of GOMAXPROCS. Package data/images reads images,
// and model.ResNet is the network.
package simclr
