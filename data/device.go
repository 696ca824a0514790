package data

import "cne/internal/device"

// A Device is where long computations run: the CPU, or an accelerator such as a
// GPU. A nil *Device is the CPU. model.OpenDevice opens one by name.
type Device = device.Device
