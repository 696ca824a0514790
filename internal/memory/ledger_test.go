package memory

import "testing"

// A thrifty collector lets less garbage take memory, and changes nothing of what is live.
func TestThriftyLedger(t *testing.T) {
	account := func(thrifty bool) Estimate {
		l := Ledger{Thrifty: thrifty}
		l.Hold("points", "", 1e9)
		for range 20 {
			l.Pass("copies", "", 1e8)
		}
		return l.Estimate()
	}
	usual, thrifty := account(false), account(true)
	if usual.Live != thrifty.Live || usual.Live != 1.1e9 {
		t.Errorf("live are %d and %d bytes", usual.Live, thrifty.Live)
	}
	if usual.Thrifty || !thrifty.Thrifty || usual.Peak < 2e9 || thrifty.Peak > 1.6e9 {
		t.Errorf("the peaks are %+v and %+v", usual, thrifty)
	}
}

// What a part shrinks by is garbage, and a part that is not held does not shrink.
func TestShrink(t *testing.T) {
	var l Ledger
	p := l.Hold("neighbours", "", 3e9)
	l.Shrink(p, 1e9)
	l.Shrink(p, 2e9) // no less
	l.Hold("edges", "", 1e9)
	l.Collect()
	l.Hold("more edges", "", 1.5e9)
	if e := l.Estimate(); e.Live != 3.5e9 || e.Parts[0].Bytes != 1.5e9 {
		t.Errorf("the estimate is %+v", e)
	}
	l.Free(p)
	if l.Shrink(p, 0); p.Bytes != 1e9 || l.live != 2.5e9 {
		t.Errorf("%d bytes of what is not held, %g live", p.Bytes, l.live)
	}
}
