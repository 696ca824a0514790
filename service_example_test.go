package cne_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"cne"
	"cne/data"
)

// A service answers with the positions of points that clients send as rows of a JSON array,
// such as [[0.5, 2, 1], [3, 4, 1]].
func Example_service() {
	e, err := cne.Load("runs/mnist") // the folder of a run
	if err != nil {
		fmt.Println("train a network first")
		return
	}
	l, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, l, newService(e)); err != nil {
		log.Fatal(err)
	}
	// Output: train a network first
}

// serve answers requests until ctx is done, and then finishes those that have begun.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server, closed := &http.Server{Handler: h}, make(chan error, 1)
	context.AfterFunc(ctx, func() { closed <- server.Shutdown(context.Background()) })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}

func newService(e *cne.Embedding) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		points, err := readPoints(http.MaxBytesReader(w, r.Body, 16<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		positions, err := e.Project(r.Context(), points) // any number of goroutines may call it
		switch {
		case errors.Is(err, cne.ErrPoints):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer := make([][]float32, positions.N)
		for i := range answer {
			answer[i] = positions.Row(i)
		}
		_ = json.NewEncoder(w).Encode(answer) // an error means that the client has left
	})
}

func readPoints(r io.Reader) (*data.Matrix, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("null")) { // which Unmarshal takes for 0
		return nil, errors.New("got null, want numbers")
	}
	var rows [][]float64
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, err
	}
	return data.FromRows(rows)
}
