package images_test

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"log"

	"cne/data/images"
)

func ExampleFrom() {
	photo := image.NewRGBA(image.Rect(0, 0, 6, 4)) // as image.Decode returns it
	draw.Draw(photo, photo.Rect, image.NewUniform(color.RGBA{250, 100, 0, 255}), image.Point{}, draw.Src)
	set, err := images.From([]image.Image{photo}, 2) // of 2×2 pixels
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.N, set.H, set.W, set.C, set.Image(0)[:3])
	// Output:
	// 1 2 2 3 [250 100 0]
}
