package text

import (
	"slices"
	"strings"
	"time"
)

// DateOrder is an order of the parts of a date that could be read in several ways.
type DateOrder int

// Orders of dates.
const (
	DateClear    DateOrder = iota // 2024-12-31, 31.12.2024, 31 Dec 2024, or only a time
	DateMonthDay                  // 12/31/2024
	DateDayMonth                  // 31/12/2024
)

var (
	dayLayouts = [...][]string{
		DateClear:    {"2006-1-2", "2006/1/2", "2.1.2006", "2-Jan-2006", "2 Jan 2006", "Jan 2, 2006", "2 January 2006", "January 2, 2006", ""},
		DateMonthDay: {"1/2/2006", "1-2-2006", "1/2/06"},
		DateDayMonth: {"2/1/2006", "2-1-2006", "2/1/06"},
	}
	clockLayouts = []string{"", "15:04", "15:04:05", "3:04 PM", "3:04:05 PM"} // fractions of seconds are read, too
	zoneLayouts  = []string{"", "Z07:00", "Z07", "Z0700", " Z07:00", " UTC"}
)

// ParseDays returns the days of a date, time of day, or both: since 1970 if there is a
// date, in UTC. ok is false for another text.
func ParseDays(s string, order DateOrder) (days float64, ok bool) {
	if len(s) < 4 || len(s) > 40 || !strings.ContainsAny(s, "0123456789") || !strings.ContainsAny(s, "-/.: ") {
		return 0, false
	}
	if at := strings.IndexByte(s, 'T'); at > 0 && at < len(s)-1 && s[at-1] <= '9' && s[at+1] <= '9' {
		s = s[:at] + " " + s[at+1:]
	}
	hasClock := strings.Contains(s, ":")
	for _, day := range dayLayouts[order] {
		for _, clock := range clockLayouts {
			if (clock != "") != hasClock || day == "" && !hasClock {
				continue
			}
			for _, zone := range zoneLayouts {
				if zone != "" && (clock == "" || day == "") {
					continue
				}
				t, err := time.Parse(strings.TrimSpace(day+" "+clock)+zone, s)
				if err != nil {
					continue
				}
				from := time.Unix(0, 0)
				if day == "" {
					from = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
				}
				const perDay = 24 * 60 * 60
				return (float64(t.Unix()-from.Unix()) + float64(t.Nanosecond())/1e9) / perDay, true
			}
		}
	}
	return 0, false
}

// IsDate reports whether a text is a date, in any order.
func IsDate(s string) bool {
	return slices.ContainsFunc([]DateOrder{DateClear, DateMonthDay, DateDayMonth},
		func(o DateOrder) bool { _, ok := ParseDays(s, o); return ok })
}
