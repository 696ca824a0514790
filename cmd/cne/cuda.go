//go:build cu

package main

import _ "cne/internal/device/cuda" // the driver of NVIDIA's GPUs
