package main

import (
	"cmp"
	"errors"
	"log/slog"

	"cne/configs"
	"cne/internal/device"
	"cne/model"
)

// openDevice opens the device on which something is measured, or a finished model
// used, and says which it is unless that is the CPU.
func openDevice(log *slog.Logger, c configs.Device) (*model.Device, error) {
	d, err := model.OpenDevice(c.Name)
	if err != nil {
		return nil, err
	}
	d.TF32 = c.RoundsToTF32()
	if !d.OnHost() {
		log.Info(d.Reason())
		d.OnNote(func(sentence string) { log.Info(sentence) })
	}
	return d, nil
}

// openTrainingDevice opens the device on which a model is trained, and says which it
// is and why. float64 is computed on the CPU only.
func openTrainingDevice(log *slog.Logger, c configs.Device, float64 bool) (*model.Device, error) {
	why := ""
	if float64 && c.Name == "auto" {
		c.Name, why = "cpu", "computing on the CPU, since model.dtype is float64"
	}
	d, err := openDevice(log, c)
	if err == nil && d.OnHost() && !c.OfConvolutions().Native() {
		return nil, errors.New("device.precision: this processor has no products of bf16 (AVX512-BF16); set it to float32, or train on a GPU, or on a processor that has some")
	}
	if err == nil && d.OnHost() {
		log.Info(cmp.Or(why, d.Reason()))
	}
	return d, err
}

// deviceFailed tells whether an error is of a device that has failed, has too little
// memory, or lacks a library that was asked for, so that there may be nothing to keep.
func deviceFailed(err error) bool {
	full := new(device.MemoryError)
	return errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrUnavailable) || errors.As(err, &full)
}

// nameOf returns the name of a device for metrics.json: that of an accelerator with
// the vendor's.
func nameOf(d *model.Device) string {
	if d.OnHost() {
		return "cpu"
	}
	return d.Name() + ", " + d.Properties().Name
}
