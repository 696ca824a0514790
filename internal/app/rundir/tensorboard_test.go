package rundir

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

var noon = time.Unix(1_600_000_000, 250_000_000)

// The bytes are put together by hand of the definitions of TFRecord, Event and
// Summary; the checksums were computed bit by bit (see slowCRC).
func TestEventBytes(t *testing.T) {
	var b bytes.Buffer
	w, err := newEventWriter(&b, noon, 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.write(noon, 300, []scalar{{"loss", 0.5}, {"kl", -2}}); err != nil {
		t.Fatal(err)
	}
	wall := "09" + "00001000" + "84d7d741" // field 1, 1600000000.25 = 0x1.7d784001p30
	var want bytes.Buffer
	for _, event := range []string{
		wall + "1000" + "1a0d" + hex.EncodeToString([]byte("brain.Event:2")),
		wall + "1007" + "3a02" + "0801", // session log, status START
		wall + "10ac02" + // step 300
			"2a18" + // summary of 24 bytes
			"0a0b" + "0a04" + hex.EncodeToString([]byte("loss")) + "15" + "0000003f" +
			"0a09" + "0a02" + hex.EncodeToString([]byte("kl")) + "15" + "000000c0",
	} {
		data, err := hex.DecodeString(event)
		if err != nil {
			t.Fatal(err)
		}
		length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
		want.Write(length)
		want.Write(binary.LittleEndian.AppendUint32(nil, mask(slowCRC(length))))
		want.Write(data)
		want.Write(binary.LittleEndian.AppendUint32(nil, mask(slowCRC(data))))
	}
	if !bytes.Equal(b.Bytes(), want.Bytes()) {
		t.Errorf("wrote\n%x\nwant\n%x", b.Bytes(), want.Bytes())
	}
}

// The checksum of "123456789" is a published one of CRC-32C.
func TestEventChecksum(t *testing.T) {
	const check = 0xe3069283
	if got := slowCRC([]byte("123456789")); got != check {
		t.Fatalf("the test's CRC-32C is %#x, want %#x", got, check)
	}
	if got, want := checksum([]byte("123456789")), mask(check); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// slowCRC is CRC-32C bit by bit: the reversed polynomial 0x82f63b78.
func slowCRC(b []byte) uint32 {
	c := ^uint32(0)
	for _, v := range b {
		c ^= uint32(v)
		for range 8 {
			low := c & 1
			c >>= 1
			if low == 1 {
				c ^= 0x82f63b78
			}
		}
	}
	return ^c
}

func mask(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

func TestEventsRoundTrip(t *testing.T) {
	var b bytes.Buffer
	w, err := newEventWriter(&b, noon, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 version brain.Event:2", "1 session 1",
		"1 loss=3.25 größe/ü=-1e-30", "2", "123456789012 nan=NaN inf=+Inf long=" + fmt.Sprint(float32(math.Pi)),
	}
	for _, e := range []struct {
		step   int
		values []scalar
	}{
		{1, []scalar{{"loss", 3.25}, {"größe/ü", -1e-30}}},
		{2, nil},
		{123456789012, []scalar{{"nan", math.NaN()}, {"inf", math.Inf(1)}, {"long", math.Pi}}},
	} {
		if err := w.write(noon.Add(time.Duration(e.step)), e.step, e.values); err != nil {
			t.Fatal(err)
		}
	}
	got, err := decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("read\n%s\nwant\n%s", g, w)
	}
}

// decode reads an event file independently of the writer, each event as a
// line of words.
func decode(b []byte) ([]string, error) {
	table := crc32.MakeTable(0x82f63b78)
	var out []string
	for len(b) > 0 {
		if len(b) < 16 {
			return out, io.ErrUnexpectedEOF
		}
		n := binary.LittleEndian.Uint64(b)
		if uint64(len(b)) < n+16 || binary.LittleEndian.Uint32(b[8:]) != mask(crc32.Checksum(b[:8], table)) {
			return out, fmt.Errorf("a length of %d with %d bytes left, or its checksum", n, len(b))
		}
		data := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[12+n:]) != mask(crc32.Checksum(data, table)) {
			return out, errors.New("the checksum of an event")
		}
		b = b[16+n:]
		event, err := parse(data)
		if err != nil {
			return out, err
		}
		if wall := math.Float64frombits(event[1][0].number); math.Abs(wall-1600000000.25) > 200 {
			return out, fmt.Errorf("wall time %v", wall)
		}
		line := fmt.Sprint(event[2][0].number)
		if v := event[3]; v != nil {
			line += " version " + string(v[0].bytes)
		}
		if v := event[7]; v != nil {
			session, err := parse(v[0].bytes)
			if err != nil {
				return out, err
			}
			line += fmt.Sprint(" session ", session[1][0].number)
		}
		if v := event[5]; v != nil {
			summary, err := parse(v[0].bytes)
			if err != nil {
				return out, err
			}
			for _, value := range summary[1] {
				fields, err := parse(value.bytes)
				if err != nil {
					return out, err
				}
				line += fmt.Sprintf(" %s=%v", fields[1][0].bytes, math.Float32frombits(uint32(fields[2][0].number)))
			}
		}
		out = append(out, line)
	}
	return out, nil
}

type field struct {
	number uint64
	bytes  []byte
}

// parse reads the fields of a protocol buffer message.
func parse(b []byte) (map[uint64][]field, error) {
	fields := map[uint64][]field{}
	take := func(n uint64) []byte {
		if uint64(len(b)) < n {
			return make([]byte, n)
		}
		out := b[:n]
		b = b[n:]
		return out
	}
	varint := func() uint64 {
		v, n := binary.Uvarint(b)
		take(uint64(max(1, n)))
		return v
	}
	for len(b) > 0 {
		key := varint()
		var f field
		switch key & 7 {
		case 0:
			f.number = varint()
		case 1:
			f.number = binary.LittleEndian.Uint64(take(8))
		case 2:
			f.bytes = take(varint())
		case 5:
			f.number = uint64(binary.LittleEndian.Uint32(take(4)))
		default:
			return nil, fmt.Errorf("wire type %d", key&7)
		}
		fields[key>>3] = append(fields[key>>3], f)
	}
	return fields, nil
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestEventsWriteFails(t *testing.T) {
	w, err := newEventWriter(failing{}, noon, 1)
	if err == nil || !strings.Contains(err.Error(), "events cannot be written: disk full") {
		t.Errorf("%v", err)
	}
	if err := w.write(noon, 1, nil); err == nil {
		t.Error("no error")
	}
}
