package simclr

// ViewTo writes a view of one image to dst.
func (a *Augmentation) ViewTo(dst []float32, image []byte, h, w int, stream Stream) error {
	a.view(new(workspace), dst, image, h, w, stream)
	return nil
}

// EvalTo writes one image without augmentation to dst.
func (a *Augmentation) EvalTo(dst []float32, image []byte, h, w int) error {
	a.eval(new(workspace), dst, image, h, w)
	return nil
}
