//go:build cu

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkCache returns a sentence if the driver cannot write to the folder where it
// caches compiled kernels. The driver itself does not report this.
func checkCache() (sentence string) {
	if os.Getenv("CUDA_CACHE_DISABLE") == "1" {
		return "" // as asked for
	}
	const costs = "so the driver compiles the kernels again at each start, which takes perhaps a second or more"
	folder, which, name := os.Getenv("CUDA_CACHE_PATH"), ", which CUDA_CACHE_PATH names", "it"
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Sprintf("there is no home folder, %s; let CUDA_CACHE_PATH name a folder", costs)
		}
		folder, which, name = filepath.Join(home, ".nv", "ComputeCache"), "", "CUDA_CACHE_PATH"
	}
	if writable(folder) {
		return ""
	}
	return fmt.Sprintf("nothing can be written to %s%s, %s; let %s name a folder that can be written", folder, which, costs, name)
}

// writable reports whether files can be created in a folder, or the folder itself if it
// is missing.
func writable(folder string) bool {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	for {
		about, err := os.Stat(folder)
		switch {
		case err == nil:
			const writeAndEnter = 2 | 1 // W_OK | X_OK of access(2)
			return about.IsDir() && syscall.Access(folder, writeAndEnter) == nil
		case !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder):
			return false
		}
		folder = filepath.Dir(folder)
	}
}
