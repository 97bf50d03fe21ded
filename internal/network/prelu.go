// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Rewrite returns an ONNX model in which each PRelu with one slope a per channel is made of
// operators that ONNX Runtime computes together with the convolutions around them. A PRelu y is x
// where x >= 0, and a·x elsewhere, so
//
//	y = a·x + (1-a)·relu(x)
//
// because relu(x) is x where x >= 0, which gives a·x + (1-a)·x = x, and 0 elsewhere, which gives
// a·x. Where no a is above 1, (1-a)·relu(x) is relu((1-a)·x), which follows a convolution and is
// computed with it. A product by a number for each channel is a depthwise convolution of 1 by 1.
// The rounding of two products and a sum remains.
//
// A PRelu whose slopes are not known, or not one for each channel of a picture, stays.
func rewrite(model []byte) ([]byte, error) {
	return edit(model, fieldGraph, func(graph []byte) ([]byte, error) {
		all, err := fields(graph)
		if err != nil {
			return nil, err
		}
		slopes := map[string][]float32{}
		for _, f := range all {
			if f.number == fieldInitializer && f.wire == wireBytes {
				name, values, err := channels(f.value)
				if err != nil {
					return nil, err
				}
				if len(values) > 0 {
					slopes[name] = values
				}
			}
		}
		var out, constants []byte
		for _, f := range all {
			if f.number != fieldNode || f.wire != wireBytes {
				out = append(out, f.whole...)
				continue
			}
			n, err := parseNode(f.value)
			if err != nil {
				return nil, err
			}
			var a []float32
			if n.op == "PRelu" && len(n.inputs) == 2 && len(n.outputs) == 1 {
				a = slopes[n.inputs[1]]
			}
			if a == nil {
				out = append(out, f.whole...)
				continue
			}
			x, y := n.inputs[0], n.outputs[0]
			b := make([]float32, len(a))
			for i := range a {
				b[i] = 1 - a[i]
			}
			constants = append(constants, constant(y+"/a", a)...)
			constants = append(constants, constant(y+"/b", b)...)
			out = append(out, product(x, y+"/a", y+"/ax", len(a))...)
			if slices.Max(a) <= 1 {
				out = append(out, product(x, y+"/b", y+"/bx", len(a))...)
				out = append(out, node("Relu", y+"/relu", nil, y+"/bx")...)
			} else {
				out = append(out, node("Relu", y+"/rx", nil, x)...)
				out = append(out, product(y+"/rx", y+"/b", y+"/relu", len(a))...)
			}
			out = append(out, node("Add", y, nil, y+"/ax", y+"/relu")...)
		}
		return append(out, constants...), nil
	})
}

// Numbers of the fields and types of ONNX that are read or written here.
const (
	fieldGraph = 7 // of a model

	fieldNode        = 1 // of a graph
	fieldInitializer = 5

	fieldInput     = 1 // of a node
	fieldOutput    = 2
	fieldName      = 3
	fieldOperator  = 4
	fieldAttribute = 5

	fieldDims       = 1 // of a tensor
	fieldDataType   = 2
	fieldFloats     = 4
	fieldTensorName = 8
	fieldRaw        = 9

	typeFloat = 1

	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// field is a field of a message of protocol buffers.
type field struct {
	number, wire int
	varint       uint64
	value, whole []byte // whole has the tag, too
}

var errProtobuf = errors.New("the ONNX file is damaged")

func fields(b []byte) (all []field, err error) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
			return nil, errProtobuf
		}
		f := field{number: int(tag >> 3), wire: int(tag & 7)}
		length := uint64(0)
		switch f.wire {
		case wireVarint, wireBytes:
			x, m := binary.Uvarint(b[n:])
			if m <= 0 {
				return nil, errProtobuf
			}
			n += m
			f.varint = x
			if f.wire == wireBytes {
				length = x
			}
		case wire64:
			length = 8
		case wire32:
			length = 4
		default:
			return nil, errProtobuf
		}
		if length > uint64(len(b)-n) {
			return nil, errProtobuf
		}
		end := n + int(length)
		f.value, f.whole = b[n:end], b[:end]
		all, b = append(all, f), b[end:]
	}
	return all, nil
}

// edit returns a message in which change has changed the fields of bytes with a number.
func edit(message []byte, number int, change func([]byte) ([]byte, error)) (out []byte, err error) {
	all, err := fields(message)
	for _, f := range all {
		if f.number == number && f.wire == wireBytes {
			changed, err := change(f.value)
			if err != nil {
				return nil, err
			}
			f.whole = bytesField(number, changed)
		}
		out = append(out, f.whole...)
	}
	return out, err
}

// channels returns the name of a tensor, and its values if it has the shape [C,1,1] or [1,C,1,1] of
// numbers for each channel.
func channels(tensor []byte) (name string, values []float32, err error) {
	all, err := fields(tensor)
	if err != nil {
		return "", nil, err
	}
	var dims []uint64
	var raw []byte
	kind := uint64(0)
	for _, f := range all {
		switch {
		case f.number == fieldDims && f.wire == wireVarint:
			dims = append(dims, f.varint)
		case f.number == fieldDims && f.wire == wireBytes:
			for b := f.value; len(b) > 0; {
				x, n := binary.Uvarint(b)
				if n <= 0 {
					return "", nil, errProtobuf
				}
				dims, b = append(dims, x), b[n:]
			}
		case f.number == fieldDataType:
			kind = f.varint
		case f.number == fieldFloats || f.number == fieldRaw:
			raw = append(raw, f.value...)
		case f.number == fieldTensorName:
			name = string(f.value)
		}
	}
	if len(dims) == 4 && dims[0] == 1 {
		dims = dims[1:]
	}
	if kind != typeFloat || len(dims) != 3 || dims[0] < 2 || dims[1] != 1 || dims[2] != 1 ||
		dims[0] != uint64(len(raw)/4) || len(raw)%4 != 0 {
		return name, nil, nil
	}
	for ; len(raw) > 0; raw = raw[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return name, values, nil
}

type parsedNode struct {
	op              string
	inputs, outputs []string
}

func parseNode(b []byte) (n parsedNode, err error) {
	all, err := fields(b)
	if err != nil {
		return n, fmt.Errorf("a node: %w", err)
	}
	for _, f := range all {
		switch f.number {
		case fieldInput:
			n.inputs = append(n.inputs, string(f.value))
		case fieldOutput:
			n.outputs = append(n.outputs, string(f.value))
		case fieldOperator:
			n.op = string(f.value)
		}
	}
	return n, nil
}

func bytesField[T string | []byte](number int, value T) []byte {
	b := binary.AppendUvarint(nil, uint64(number<<3|wireBytes))
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func varintField(number int, values ...int) (b []byte) {
	for _, v := range values {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(number<<3|wireVarint)), uint64(v))
	}
	return b
}

// node returns a field of a graph: an operator with one output.
func node(op, output string, attributes []byte, inputs ...string) []byte {
	var b []byte
	for _, in := range inputs {
		b = append(b, bytesField(fieldInput, in)...)
	}
	b = append(b, bytesField(fieldOutput, output)...)
	b = append(b, bytesField(fieldName, output)...)
	b = append(b, bytesField(fieldOperator, op)...)
	return bytesField(fieldNode, append(b, attributes...))
}

// product returns a node that multiplies each channel of x by its weight.
func product(x, weights, output string, channels int) []byte {
	attribute := func(name string, kind, number int, values ...int) []byte {
		b := append(bytesField(1, name), varintField(number, values...)...)
		return bytesField(fieldAttribute, append(b, varintField(20, kind)...))
	}
	return node("Conv", output,
		append(attribute("group", 2, 3, channels), attribute("kernel_shape", 7, 8, 1, 1)...), x,
		weights)
}

// constant returns a field of a graph: the weights of a depthwise convolution of 1 by 1.
func constant(name string, values []float32) []byte {
	b := append(varintField(fieldDims, len(values), 1, 1, 1),
		varintField(fieldDataType, typeFloat)...)
	b = append(b, bytesField(fieldTensorName, name)...)
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return bytesField(fieldInitializer, append(b, bytesField(fieldRaw, raw)...))
}
