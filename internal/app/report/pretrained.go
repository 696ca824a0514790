package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cne"
	"cne/configs"
	"cne/data/images"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
	"cne/simclr"
)

// PretrainedConfig returns the configuration of the run in a folder if it is one of
// cne simclr pretrain, and nil otherwise.
func PretrainedConfig(folder string) *configs.SimCLR {
	c, _, err := configs.Pretrain.Load(&configs.Sources{File: filepath.Join(folder, rundir.ConfigFile)})
	if err != nil {
		return nil
	}
	c.Data.Path, c.Data.Labels = rundir.LocatePaths(folder, c.Data.Path), rundir.LocatePaths(folder, c.Data.Labels)
	return c
}

// PretrainedImages returns the images of the run of cne simclr pretrain in a folder, in
// colour, and the rows that were trained on. Images other than the run's training images are an
// error.
func PretrainedImages(ctx context.Context, folder string, c *configs.SimCLR) (set *images.Set, trained []int32, err error) {
	defer kind.Catch(&err)
	set = kind.Got(images.Open(ctx, c.Data.Path, c.Data.Options))
	set = set.InColour() // as the run saw them
	trained = kind.Got(c.SimCLR.Rows(set))
	if key, _ := rundir.DataKeys(folder); key != "" && key != rundir.ImagesKey(set, trained) {
		return nil, nil, errors.New("the images of data.path are not those that the run was trained on")
	}
	return set, trained, nil
}

// pretrainedPage is RunPage for a run of cne simclr pretrain that has placed its images:
// with their names, and with held-out images marked. If the images have changed, the page
// leaves them out with a warning and takes the names from the folder.
func pretrainedPage(ctx context.Context, log *slog.Logger, folder string, c *configs.SimCLR, m *Map, set *images.Set,
	withImages bool, w Wanted) (*cne.PageOptions, error) {
	page := &cne.PageOptions{Facts: planeFacts(folder)}
	if err := Annotate(ctx, log, page, rundir.Table{}, w, m.Positions.N, nil); err != nil {
		return nil, err
	}
	if w.Data != nil {
		c.Data.Path = w.Data
	}
	own, trained, err := PretrainedImages(ctx, folder, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil && own.N != m.Positions.N {
		err = fmt.Errorf("data.path: got %d images, want %d as in the embedding", own.N, m.Positions.N)
	}
	if err != nil {
		log.Warn(selection.If(set == nil, "the run's images, and which of them were held out, are left out of the page",
			"which images were held out is left out of the page"), "reason", rundir.Moved(err, rundir.PlotData))
		own, trained = &images.Set{}, nil
		if own.Names, err = rundir.ReadNames(ctx, folder, m.Positions.N); err != nil {
			log.Warn("the names of the images are left out of the page", "reason", err)
		}
	}
	placed := Placed{Images: own, Trained: trained}
	m.HeldOut = placed.heldOut()
	if page.Images = set; withImages && set == nil && own.N > 0 {
		page.Images = own
	}
	if page.Names == nil {
		page.Names = own.Names
	}
	return page, nil
}

// planeFacts returns a page's facts on the positions in the folder of a pretraining.
func planeFacts(folder string) []cne.Fact {
	var m struct {
		Plane *simclr.Score `json:"knn_plane"`
	}
	text, err := os.ReadFile(filepath.Join(folder, rundir.MetricsFile))
	if err != nil || json.Unmarshal(text, &m) != nil || m.Plane == nil {
		return nil
	}
	return planeFact(m.Plane)
}

// planeFact returns a page's fact on the kNN accuracy of the positions.
func planeFact(s *simclr.Score) []cne.Fact {
	return []cne.Fact{{
		Name: "kNN accuracy", Value: fmt.Sprintf("%.3f", s.Mean),
		Meaning: "The share of test images whose class most of their nearest neighbours in the embedding have, too. From 0 to 1, higher is better.",
	}}
}

// Placed are images that a network gives positions.
type Placed struct {
	Images *images.Set
	// Trained are the rows of the images that the network was trained on; nil means all.
	Trained []int32
	// Device is where the positions are measured.
	Device *model.Device
}

// Write writes the positions into a run folder as the configuration says: an array, a
// table, a picture of training and held-out images, and a page with all images. It
// returns the kNN accuracy, nil if the configuration does not ask for it. progress is
// called as images are placed.
func (p *Placed) Write(ctx context.Context, log *slog.Logger, dir *rundir.Dir, c *configs.SimCLR,
	network *model.ResNet[float32], progress func(done, all int)) (accuracy *simclr.Score, err error) {
	defer kind.Catch(&err)
	augmentation := c.Pretraining().Augmentation
	positions := kind.Got(simclr.Features(ctx, simclr.Projection{ResNet: network}, &augmentation, p.Images, nil, progress))
	var facts []cne.Fact
	if c.Evaluate.AtEnd {
		e := c.Evaluation(p.Images).Options()
		e.Device = p.Device
		found := kind.Got(e.Plane(ctx, positions, p.Images))
		accuracy, facts = &found, planeFact(&found)
	}
	kind.Check(rundir.WriteEmbedding(dir.PositionFiles("embedding", c.Output.CSV), positions, p.Images.Labels, p.Images.Names))
	kind.Check(dir.WriteNames(p.Images.Names))
	m := Map{positions, p.Images.Labels, p.heldOut()}
	if c.Output.Plot {
		kind.Check(m.SavePicture(log, dir.Path("embedding.png"), cne.PictureOptions{}))
	}
	if !c.Output.HTML {
		return accuracy, nil
	}
	page := &cne.PageOptions{Title: p.Images.Name, Facts: facts, Names: p.Images.Names, Images: p.Images}
	return accuracy, m.SavePage(dir.Path(rundir.PageFile), page)
}

// heldOut reports for each image whether it was held out of the training; nil if none
// was.
func (p *Placed) heldOut() []bool {
	if p.Trained == nil || len(p.Trained) == p.Images.N {
		return nil
	}
	held := slices.Repeat([]bool{true}, p.Images.N)
	for _, i := range p.Trained {
		held[i] = false
	}
	return held
}

// WarnSkipped warns of the files of a folder that cannot be read.
func WarnSkipped(log *slog.Logger, images *images.Set) {
	if images.Stray != "" && images.Labels == nil {
		log.Warn("the images have no labels, since this is not in the folder of a class, as most images are", "path", images.Stray)
	}
	if n := len(images.Skipped); n > 0 {
		log.Warn("images that cannot be read are left out", "count", n, "files", text.Few(images.Skipped, nil))
	}
}
