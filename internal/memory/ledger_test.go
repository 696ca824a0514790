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
