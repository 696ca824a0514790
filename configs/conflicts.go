package configs

import (
	"cne/data/neighbors"
	"cne/internal/option"
)

// conflicts lists the conflicts between keys that the library does not know.
func (c *Config) conflicts() []*option.Error {
	table, d := c.Model.Kind == "table", &c.Data
	hasGraph, named, earlier := c.Graph.File != nil, d.Names != nil, c.Model.InitPath() != ""
	onGPU := c.Device.Name != "auto" && c.Device.Name != "cpu"
	return []*option.Error{
		conflictIf(c.Device.Precision == BF16, "device.precision", "model.kind", "tf32 or float32; bf16 is for cne simclr"),
		conflictIf(c.Embed.Float64 && onGPU, "model.dtype", "device.name", "float32, or the device cpu"),
		conflictIf(earlier && !table, "model.init", "model.kind", "pca; a network starts with random weights"),
		conflictIf(c.Model.InitNames != nil && !earlier, "model.init_names", "model.init", "null, or an earlier embedding there"),
		conflictIf(c.Model.InitNames != nil && !named, "model.init_names", "data.names", "null, or names there"),
		conflictIf(c.Model.KeepData && !table, "model.keep_data", "model.kind", "false"),
		conflictIf(len(d.HoldoutLabels) > 0 && (d.Holdout == nil || len(d.Holdout.Paths) == 0), "data.holdout_labels",
			"data.holdout", "[], or paths of held-out points there"),
		conflictIf(d.Sample != nil && earlier && !named, "data.sample", "model.init", "null, or data.names to match the points"),
		conflictIf(c.Embed.Search == neighbors.Approximate && hasGraph, "graph.search", "graph.file", "auto"),
		conflictIf(c.Output.AutoLabels && c.Data.Names == nil, "output.auto_labels", "data.names",
			"false, or the texts of the points there (--names)"),
	}
}
