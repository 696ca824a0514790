package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// errClaimed is the error if another process has claimed a file.
var errClaimed = errors.New("in use")

// unclaimedAge is the least age of an abandoned temporary file where files cannot be
// claimed.
const unclaimedAge = time.Hour

// claimNew claims a temporary file that was just made. ok is false if another process has
// taken it for an abandoned file before.
func claimNew(path string) (release func(), ok bool) {
	release, err := claim(path)
	switch {
	case errors.Is(err, errClaimed), errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil: // files cannot be claimed here
		return func() {}, true
	}
	if _, err := os.Lstat(path); err != nil { // removed between the two steps of claim
		release()
		return nil, false
	}
	return release, true
}

// cleaned are the folders that removeAbandonedOnce has seen.
var cleaned sync.Map

// removeAbandonedOnce removes the temporary files of killed processes in a folder, once
// per process. Writing does not need this.
func removeAbandonedOnce(folder string) {
	if at, err := filepath.Abs(folder); err == nil {
		folder = at
	}
	if _, before := cleaned.LoadOrStore(folder, true); before {
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if match, _ := filepath.Match(Pattern, e.Name()); match && e.Type().IsRegular() {
			removeAbandoned(filepath.Join(folder, e.Name()))
		}
	}
}

// removeAbandoned removes a temporary file unless its writer still lives.
func removeAbandoned(path string) {
	release, err := claim(path)
	switch {
	case err == nil:
		defer release()
	case errors.Is(err, errors.ErrUnsupported):
		if info, err := os.Lstat(path); err != nil || time.Since(info.ModTime()) < unclaimedAge {
			return
		}
	default:
		return
	}
	// If the writer has succeeded meanwhile, the name no longer exists.
	_ = os.Remove(path)
}
