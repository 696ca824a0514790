package figures

import (
	"fmt"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/explorer"
	"cne/internal/rundir"
)

// Placed are images with the positions that a network gives them.
type Placed struct {
	Images    *data.Images
	Positions *data.Matrix // [Images.N, d]
	// Trained are the rows of the images that the network was trained on; nil means all.
	Trained []int32
	// Facts are shown in the page.
	Facts []explorer.Fact
}

// Write writes the positions into a run folder as the configuration says: an array, a
// table, a picture in which the images that the network has not seen are drawn among the
// others, and a page with all images.
func (p *Placed) Write(dir *rundir.Dir, o *configs.SimCLROutput) error {
	if err := dir.WriteEmbedding(&configs.Output{CSV: o.CSV}, "embedding", p.Positions, p.Images.Labels, p.Images.Names); err != nil {
		return err
	}
	if err := dir.WriteNames(p.Images.Names); err != nil {
		return err
	}
	s := Scatter(p.Positions, p.Images.Labels, configs.Plot{})
	if p.Trained != nil && len(p.Trained) < p.Images.N {
		s.HeldOut = make([]bool, p.Images.N)
		for i := range s.HeldOut {
			s.HeldOut[i] = true
		}
		for _, i := range p.Trained {
			s.HeldOut[i] = false
		}
	}
	if o.Plot {
		if err := s.Save(dir.Path("embedding.png")); err != nil {
			return err
		}
	}
	if !o.HTML {
		return nil
	}
	var images *data.Images
	if o.HTMLImages {
		images = p.Images
	}
	page := Page(s, p.Images.Name, p.Facts, images)
	page.Names = p.Images.Names
	return page.Save(dir.Path(rundir.PageFile))
}

// few is how many of the files that were left out are named.
const few = 5

// Skipped says which files of a folder were left out.
func Skipped(images *data.Images) string {
	names := images.Skipped
	more := ""
	if len(names) > few {
		more = fmt.Sprintf(" and %d more", len(names)-few)
		names = names[:few]
	}
	return strings.Join(names, ", ") + more
}
