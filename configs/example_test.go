package configs_test

import (
	"fmt"

	"cne/configs"
)

// A configuration without a file, and what a mistake in one gives.
func ExampleSchema() {
	c, origins, err := configs.Train.Load(configs.Sources{
		Settings: []configs.Setting{{Source: "example", Key: "loss.s", Value: "0.5"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Embed.Loss, *c.Embed.Spectrum.S, "from", origins["loss.s"])
	fmt.Println(*c.Options().Spectrum.S)

	_, err = configs.Train.Parse("run.yaml", []byte("loss:\n  name: umpa"))
	fmt.Println(err)
	// Output:
	// neg 0.5 from example
	// 0.5
	// run.yaml:2: loss.name: got "umpa", want neg, nc, infonc or umap; did you mean umap?
}
