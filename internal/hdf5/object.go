package hdf5

import (
	"bytes"
	"slices"
	"strings"

	"cne/internal/kind"
	"cne/internal/selection"
)

// Messages of object headers.
const (
	msgSpace, msgLinkInfo, msgType, msgOldFill, msgFill, msgLink = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
	msgExternal, msgLayout, msgFilters, msgAttribute             = 0x07, 0x08, 0x0b, 0x0c
	msgContinue, msgSymbolTable, msgAttrInfo                     = 0x10, 0x11, 0x15

	lastMessage = 0x18 // that the library knows
)

// A message is a part of an object header.
type message struct {
	kind  int
	flags uint64
	body  []byte
}

// header reads the messages of an object; what is its path, for messages.
func (f *File) header(what string, addr uint64) (all []message) {
	seen := map[uint64]bool{addr: true}
	modern := string(f.read(what, addr, 6).b[:4]) == "OHDR"
	var c *cursor
	is, more := 2, 3 // bytes of the type of a message, and of the rest of its head after the flags
	if modern {
		c = f.read(what, addr+4, 2)
		c.version(2, 2)
		flags := c.int(1)
		is, more = 1, flags>>2&1*2
		n, width := uint64(6+flags>>5&1*16+flags>>4&1*4), 1<<(flags&3)
		size := f.read(what, addr+n, uint64(width)).uint(width)
		n += uint64(width)
		c = f.readBlock(what, "OHDR", addr, sum(1, n+4, 1, size))
		c.skip(int(n) - 4)
	} else {
		c = f.read(what, addr, 16)
		c.version(1, 1)
		c.skip(7)
		c = f.read(what, addr+16, c.uint(4))
	}
	for todo := []*cursor{c}; len(todo) > 0; todo = todo[1:] {
		for c := todo[0]; len(c.b)-c.next >= is+3+more; { // less is a gap
			kind, n, flags := c.int(is), c.int(2), c.uint(1)
			c.skip(more)
			m := message{kind, flags, c.bytes(n)}
			supported(m.kind <= lastMessage || m.flags&0x80 == 0, "%s: got the message %#x", what, m.kind)
			if m.kind != msgContinue {
				all = append(all, m)
				continue
			}
			b := &cursor{f: f, what: what, b: m.body}
			addr, size := b.addr(), b.len()
			c.must(!seen[addr], "its parts form a cycle")
			seen[addr] = true
			next := f.read(what, addr, size)
			if modern {
				next.checksum()
				next.magic("OCHK")
			}
			todo = append(todo, next)
		}
	}
	return all
}

// body returns a cursor over a message of an object, which may be in another object.
func (o *Object) body(m message) *cursor {
	return o.f.shared(&cursor{f: o.f, what: o.Path, b: m.body}, m.flags&2 != 0, m.kind)
}

// shared returns c, or, if it is a pointer to a message of another object, that one.
func (f *File) shared(c *cursor, pointer bool, kind int) *cursor {
	if !pointer {
		return c
	}
	version, is := c.version(1, 3), c.int(1)
	if version == 1 {
		c.skip(6)
	}
	supported(version < 3 || is == 2, "%s: got a message that several objects share", c.what)
	all := f.header(c.what, c.addr())
	i := slices.IndexFunc(all, func(m message) bool { return m.kind == kind && m.flags&2 == 0 })
	c.must(i >= 0, "a committed type has none")
	return &cursor{f: f, what: c.what, b: all[i].body}
}

// An Object is a group or a dataset of a file, at its path.
type Object struct {
	f        *File
	Path     string
	messages []message
}

// find returns a cursor over the first message of a kind, or nil.
func (o *Object) find(kind int) *cursor {
	i := slices.IndexFunc(o.messages, func(m message) bool { return m.kind == kind })
	if i < 0 {
		return nil
	}
	return o.body(o.messages[i])
}

// IsGroup reports whether the object is a group.
func (o *Object) IsGroup() bool {
	return !slices.ContainsFunc(o.messages, func(m message) bool { return m.kind == msgLayout })
}

// A link is a member of a group.
type link struct {
	name     string
	addr     uint64
	soft     string // the path of a soft link; the file and path of an external one
	external bool
}

// members returns the links of a group.
func (o *Object) members() (links []link) {
	if c := o.find(msgSymbolTable); c != nil {
		links = o.f.oldLinks(o.Path, c.addr(), c.addr())
	}
	return append(links, selection.Map(o.all(msgLink, msgLinkInfo, 8, 5, 4), (*cursor).link)...)
}

// all returns the messages of a kind, and after them those that are stored densely, which
// a message of the kind info says: in it, ordered bytes are skipped if its flags say so.
// Their IDs follow skip bytes of records of the kind tree.
func (o *Object) all(kind, info, ordered, tree, skip int) (list []*cursor) {
	for _, m := range o.messages {
		if m.kind == kind {
			list = append(list, o.body(m))
		}
	}
	c := o.find(info)
	if c == nil {
		return list
	}
	c.version(0, 0)
	c.skip(c.int(1) & 1 * ordered)
	if heap, records := c.addr(), c.addr(); heap != undefined && records != undefined {
		h := o.f.heap(o.Path, heap)
		o.f.records(o.Path, records, tree, func(r *cursor) {
			r.skip(skip)
			list = append(list, &cursor{f: o.f, what: o.Path, b: h.object(r)})
		})
	}
	return list
}

// link reads the message of a link.
func (c *cursor) link() (l link) {
	c.version(1, 1)
	flags := c.int(1)
	is := c.int(flags >> 3 & 1) // 0 if it is not there
	c.skip(flags>>2&1*8 + flags>>4&1)
	l.name = string(c.bytes(c.int(1 << (flags & 3))))
	supported(is < 2 || is == 64, "%s: got a link of type %d", c.what, is)
	if l.external = is == 64; is == 0 {
		l.addr = c.addr()
	} else {
		l.soft = string(c.bytes(c.int(2)))
	}
	return l
}

// oldLinks reads the links of a group as files before HDF5 1.8 have them.
func (f *File) oldLinks(what string, tree, heap uint64) (links []link) {
	c := f.read(what, heap, uint64(8+2*f.length+f.offset))
	c.magic("HEAP")
	c.skip(4)
	n, _, addr := c.len(), c.len(), c.addr()
	names := f.read(what, addr, n)
	text := func(offset uint64) string {
		names.must(offset < n, "got a name at %d, want it below %d", offset, n)
		names.next = int(offset)
		return names.name(1)
	}
	f.oldTree(what, tree, 0, f.length, func(_ *cursor, child uint64) {
		c := f.read(what, child, 8)
		c.magic("SNOD")
		c.skip(2)
		count := c.uint(2)
		c = f.read(what, child+8, count*uint64(2*f.offset+24))
		for range count {
			l := link{name: text(c.uint(f.offset)), addr: c.addr()}
			is := c.uint(8)
			if path := c.uint(4); is&0xffffffff == 2 {
				l.soft = text(path)
			}
			c.skip(12)
			links = append(links, l)
		}
	})
	return links
}

// Object returns the object at a path, such as "/obs/cell_type"; "/" is the root. If it
// does not exist, the error wraps ErrNotFound.
func (f *File) Object(path string) (o *Object, err error) {
	defer kind.Catch(&err)
	left := 32 // soft links on the way to an object
	return f.walk(nil, "/"+path, &left), nil
}

// walk follows a path from an object.
func (f *File) walk(o *Object, path string, soft *int) *Object {
	if strings.HasPrefix(path, "/") {
		o = &Object{f, "/", f.header("/", f.root)}
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." {
			continue
		}
		inside := strings.TrimSuffix(o.Path, "/") + "/" + name
		links := o.members()
		i := slices.IndexFunc(links, func(l link) bool { return l.name == name })
		kind.Need(i >= 0, ErrNotFound, "there is no %s in the file", inside)
		supported(!links[i].external, "%s: got a link to another file, %q, want the object itself", inside, strings.ReplaceAll(strings.Trim(links[i].soft, "\x00"), "\x00", ":"))
		if l := links[i]; l.soft == "" {
			o = &Object{f, inside, f.header(inside, l.addr)}
		} else {
			*soft--
			must(*soft >= 0, "%s: the links form a cycle", inside)
			o = f.walk(o, l.soft, soft)
			o.Path = inside
		}
	}
	return o
}

// Names returns the names of the members of a group, in order; none for a dataset.
func (o *Object) Names() (names []string, err error) {
	defer kind.Catch(&err)
	names = selection.Map(o.members(), func(l link) string { return l.name })
	slices.Sort(names)
	return names, nil
}

// Attribute returns an attribute as a dataset. If it does not exist, the error wraps
// ErrNotFound.
func (o *Object) Attribute(name string) (d *Dataset, err error) {
	defer kind.Catch(&err)
	for _, c := range o.all(msgAttribute, msgAttrInfo, 2, 8, 0) {
		version := c.version(1, 3)
		flags, pad := c.int(1), 1
		n, typed, space := c.int(2), c.int(2), c.int(2)
		if version == 1 {
			pad, flags = 8, 0
		}
		c.skip(version / 3)
		padded := func(n int) []byte { return c.bytes((n + pad - 1) / pad * pad) }
		if have, _, _ := bytes.Cut(padded(n), []byte{0}); string(have) != name {
			continue
		}
		c.what = o.Path + ": attribute " + name
		part := func(n, shared, kind int) *cursor {
			return o.f.shared(&cursor{f: o.f, what: c.what, b: padded(n)}, shared != 0, kind)
		}
		d = &Dataset{f: o.f, Path: c.what, Type: part(typed, flags&1, msgType).datatype(0)}
		d.space(part(space, flags&2, msgSpace))
		d.compact = c.bytes(int(d.bytes()))
		return d, nil
	}
	kind.Fail(ErrNotFound, "%s has no attribute %s", o.Path, name)
	return nil, nil
}
