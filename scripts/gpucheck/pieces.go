package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// pieces are what a run needs to be continued, in files that are small enough to be
// carried to another folder: the run's checkpoint, its configuration and its records as
// one archive, cut up. A piece is a line of JSON and its share of the archive.
type pieces struct {
	run    string // its name, with which those of the files begin
	width  int    // of its network
	epochs int    // that it is to have
}

// A pieceHeader is the first line of a piece.
type pieceHeader struct {
	Run    string `json:"run"`
	Width  int    `json:"width"`
	Epochs int    `json:"epochs"`
	Epoch  int    `json:"epoch"` // how many are done
	Part   int    `json:"part"`  // from 1
	Parts  int    `json:"parts"`
	SHA256 string `json:"sha256"` // of this piece's share
	Whole  string `json:"whole"`  // the SHA-256 of the archive
}

// carried are the files of the archive: what cne simclr pretrain --resume needs, and
// what it goes on writing.
var carried = []string{"config.yaml", "checkpoint.safetensors", "metrics.jsonl"}

func (p *pieces) name(part, parts int) string {
	return fmt.Sprintf("%s.part-%d-of-%d", p.run, part, parts)
}

// found returns the paths of the pieces in a folder; none if that has no name.
func (p *pieces) found(folder string) []string {
	if folder == "" {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, p.run+".part-*-of-*")) // the pattern is right
	return paths
}

func (p *pieces) remove(folder string) error {
	for _, path := range p.found(folder) {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// split writes what the run in a folder needs as pieces of at most part bytes, in place
// of older ones, and returns how many bytes that is. If it is more than limit, no pieces
// are left.
func (p *pieces) split(run, to string, epoch int, part, limit int64) (size int64, err error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range carried {
		if err := addFile(w, name, filepath.Join(run, name)); err != nil {
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	whole := archive.Bytes()
	size = int64(len(whole))
	if size > limit {
		return size, p.remove(to)
	}
	const forHeader = 1 << 10
	shares := slices.Collect(slices.Chunk(whole, int(max(part-forHeader, 1))))
	stale := p.found(to)
	for i, share := range shares {
		header, err := json.Marshal(pieceHeader{Run: p.run, Width: p.width, Epochs: p.epochs, Epoch: epoch, Part: i + 1, Parts: len(shares), SHA256: sum(share), Whole: sum(whole)})
		if err != nil {
			return 0, err
		}
		path := filepath.Join(to, p.name(i+1, len(shares)))
		if err := replace(path, slices.Concat(header, []byte("\n"), share)); err != nil {
			return 0, err
		}
		stale = slices.DeleteFunc(stale, func(s string) bool { return s == path })
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// read returns what a piece holds.
func (p *pieces) read(path string) (h pieceHeader, share []byte, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return h, nil, err
	}
	line, share, _ := bytes.Cut(text, []byte("\n"))
	if json.Unmarshal(line, &h) != nil || sum(share) != h.SHA256 {
		return h, nil, fmt.Errorf("%s is damaged; bring it again as the visit left it, or delete the parts, and the run begins again", path)
	}
	if h.Run != p.run {
		return h, nil, fmt.Errorf("%s is a part of %s and not of %s; delete it, or bring the right one", path, h.Run, p.run)
	}
	return h, share, nil
}

// furthest returns the folder of which the pieces are those of the most epochs, the
// first of several; "" if none has any. A piece that cannot be read counts as none: join
// says what is wrong with it.
func (p *pieces) furthest(folders ...string) (best string) {
	most := -1
	for _, folder := range folders {
		for _, path := range p.found(folder) {
			h, _, err := p.read(path)
			if err != nil {
				h.Epoch = 0
			}
			if h.Epoch > most {
				best, most = folder, h.Epoch
			}
		}
	}
	return best
}

// join puts the run that is in pieces in one of the folders, the one with the most
// epochs, into a folder, and returns how many of its epochs are done; 0 if there are
// none.
func (p *pieces) join(run string, folders ...string) (epoch int, err error) {
	paths := p.found(p.furthest(folders...))
	if len(paths) == 0 {
		return 0, nil
	}
	// Of several states the latest counts, and all of its pieces must be there.
	var last pieceHeader
	headers, shares := map[string]pieceHeader{}, map[string][]byte{}
	for _, path := range paths {
		h, share, err := p.read(path)
		if err != nil {
			return 0, err
		}
		headers[path], shares[path] = h, share
		if last.Run == "" || h.Epoch > last.Epoch {
			last = h
		}
	}
	if last.Width != p.width || last.Epochs != p.epochs {
		return 0, fmt.Errorf("the parts in %s are of a run with -width %d -epochs %d; give these, or delete the parts, and the run begins again", filepath.Dir(paths[0]), last.Width, last.Epochs)
	}
	var whole []byte
	for part := 1; part <= last.Parts; part++ {
		path := filepath.Join(filepath.Dir(paths[0]), p.name(part, last.Parts))
		h, ok := headers[path]
		switch {
		case !ok:
			return 0, fmt.Errorf("%s is missing, without which the other parts are of no use; bring it, or delete them, and the run begins again", path)
		case h.Whole != last.Whole || h.Part != part:
			return 0, fmt.Errorf("%s, of epoch %d, does not belong to the other parts, of epoch %d; bring all parts of one visit, or delete them, and the run begins again", path, h.Epoch, last.Epoch)
		}
		whole = append(whole, shares[path]...)
	}
	if sum(whole) != last.Whole {
		return 0, fmt.Errorf("the parts in %s are damaged; bring them again, or delete them, and the run begins again", filepath.Dir(paths[0]))
	}
	if err := os.MkdirAll(run, 0o777); err != nil {
		return 0, err
	}
	for r := tar.NewReader(bufio.NewReader(bytes.NewReader(whole))); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return last.Epoch, nil
		}
		if err != nil {
			return 0, err
		}
		if !slices.Contains(carried, h.Name) {
			return 0, fmt.Errorf("the parts in %s hold a file %q, which no run has; bring the right ones, or delete them", filepath.Dir(paths[0]), h.Name)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return 0, err
		}
		if err := replace(filepath.Join(run, h.Name), text); err != nil {
			return 0, err
		}
	}
}
