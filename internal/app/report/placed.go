package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cne/configs"
	"cne/data/images"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/model"
	"cne/simclr"
)

// Placed are images that a network gives positions.
type Placed struct {
	Images *images.Set
	// Trained are the rows of the images that the network was trained on; nil means all.
	Trained []int32
	// Device is where the positions are measured.
	Device *model.Device
}

// Write writes the positions into a run folder as the configuration says: an array, a
// table, a picture in which the images that the network has not seen are drawn among the
// others, and a page with all images. It returns the kNN accuracy, nil if the
// configuration wants none. progress hears of the images that are placed.
func (p *Placed) Write(ctx context.Context, dir *rundir.Dir, c *configs.SimCLR, network *model.ResNet[float32], progress func(done, all int)) (accuracy *simclr.Score, err error) {
	augmentation := c.Pretraining().Augmentation
	positions, err := simclr.Features(ctx, simclr.Projection{ResNet: network}, &augmentation, p.Images, nil, progress)
	var facts []explorer.Fact
	if err == nil && c.Evaluate.AtEnd {
		e := c.Evaluate.Options()
		e.Device = p.Device
		var found simclr.Score
		found, err = e.Plane(ctx, positions, p.Images)
		accuracy, facts = &found, planeFact(&found)
	}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted while the images were placed")
	}
	if err != nil {
		return nil, err
	}
	if err := dir.WriteEmbedding(&configs.Output{CSV: c.Output.CSV}, "embedding", positions, p.Images.Labels, nil); err != nil {
		return nil, err
	}
	if err := dir.WriteNames(p.Images.Names); err != nil {
		return nil, err
	}
	s := Scatter(positions, p.Images.Labels, configs.Plot{})
	s.HeldOut = p.heldOut()
	if c.Output.Plot {
		if err := s.Save(dir.Path("embedding.png")); err != nil {
			return nil, err
		}
	}
	if !c.Output.HTML {
		return accuracy, nil
	}
	page := Page(s, p.Images.Name, facts, nil)
	page.Names = p.Images.Names
	if c.Output.HTMLImages {
		page.Images = p.Images
	}
	return accuracy, page.Save(dir.Path(rundir.PageFile))
}

// heldOut tells of each image whether the network was not trained on it; nil if it was
// trained on all.
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

// few is how many of the files that were left out are named.
const few = 5

// Skipped names files of a folder that were left out.
func Skipped(images *images.Set) string {
	names, more := images.Skipped, ""
	if len(names) > few {
		more = fmt.Sprintf(" and %d more", len(names)-few)
		names = names[:few]
	}
	return strings.Join(names, ", ") + more
}
