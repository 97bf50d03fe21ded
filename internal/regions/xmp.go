// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrXMP is wrapped if metadata cannot be read, or cannot be added to.
var ErrXMP = errors.New("its XMP cannot be used")

// Limits of a packet.
const (
	mostXMP   = 16 << 20 // bytes
	mostDepth = 100      // of elements; a region is at 9
)

// node is an element of XMP, or a property that is written as an attribute.
type node struct {
	name  xml.Name
	attrs []xml.Attr
	text  strings.Builder
	nodes []*node
	// where its start tag begins and ends, and where its end tag begins and ends
	start, inside, outside, end int
}

// parse returns the element rdf:RDF of a packet (XMP specification, part 1, section 7).
func parse(packet []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(packet))
	top := &node{}
	open := []*node{top}
	for {
		from := int(d.InputOffset())
		token, err := d.Token()
		at := int(d.InputOffset())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrXMP, err)
		}
		in := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			n := &node{name: t.Name, attrs: t.Copy().Attr, start: from, inside: at}
			in.nodes = append(in.nodes, n)
			open = append(open, n)
		case xml.EndElement:
			in.outside, in.end = from, at
			open = open[:len(open)-1]
		case xml.CharData:
			in.text.Write(t)
		}
		if len(open) > mostDepth {
			return nil, fmt.Errorf("%w: more than %d elements in one another", ErrXMP, mostDepth)
		}
	}
	for n := top; ; n = n.nodes[0] {
		for _, c := range n.nodes {
			if c.name == rdf("RDF") {
				return c, nil
			}
		}
		if len(n.nodes) == 0 {
			return nil, fmt.Errorf("%w: it holds no rdf:RDF", ErrXMP)
		}
	}
}

// property returns the value of a property: an attribute or an element, of the node itself or of
// descriptions in it. It is nil if there is none.
func (n *node) property(name xml.Name) *node {
	if n == nil {
		return nil
	}
	for _, a := range n.attrs {
		if a.Name == name {
			v := &node{name: name}
			v.text.WriteString(a.Value)
			return v
		}
	}
	for _, c := range n.nodes {
		if c.name == name {
			return c
		}
	}
	for _, c := range n.nodes {
		if c.name == rdf("Description") {
			found := c.property(name)
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// value returns the text of a property.
func (n *node) value(name xml.Name) string {
	v := n.property(name)
	if v == nil {
		return ""
	}
	return strings.TrimSpace(v.text.String())
}

// list returns the array of a property, or nil.
func (n *node) list() *node {
	if n == nil {
		return nil
	}
	for _, c := range n.nodes {
		switch c.name {
		case rdf("Bag"), rdf("Seq"), rdf("Alt"):
			return c
		}
	}
	return nil
}

// items returns the items of an array.
func (n *node) items() []*node {
	list := n.list()
	if list == nil {
		return nil
	}
	return list.nodes
}

// packets yields the packets of XMP in a file of any kind, as programs that do not know the kind
// look for them (XMP specification, part 3, section 3).
func packets(data []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			const begins, ends = "<?xpacket begin=", "<?xpacket end="
			end := bytes.Index(data, []byte(ends))
			if end < 0 {
				return
			}
			at := bytes.LastIndex(data[max(0, end-mostXMP):end], []byte(begins))
			if at >= 0 && !yield(data[max(0, end-mostXMP)+at:end]) {
				return
			}
			data = data[end+len(ends):]
		}
	}
}
