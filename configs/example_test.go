package configs_test

import (
	"fmt"

	"cne/configs"
)

// A configuration without a file, and the error for a mistake in a file.
func ExampleSchema() {
	c, origins, err := configs.Train.Load(&configs.Sources{
		Settings: []configs.Setting{{Source: "example", Key: "loss.s", Value: "0.5"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Embed.Loss, *c.Embed.Spectrum.S, "from", origins["loss.s"])
	fmt.Println(*c.Options().Spectrum.S)

	_, err = configs.Train.Parse("run.yaml", []byte("loss:\n  metric: cosin"))
	fmt.Println(err)
	// Output:
	// neg 0.5 from example
	// 0.5
	// run.yaml:2: loss.metric: got "cosin", want euclidean or cosine; did you mean cosine?
}
