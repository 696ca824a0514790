package model

import (
	"gorgonia.org/gorgonia"

	"cne/internal/kind"
	"cne/model/op"
	"cne/model/vm"
)

// Graph is graph for the CPU.
func (n *ResNet[T]) Graph(x *gorgonia.Node) (h, z *gorgonia.Node, nodes gorgonia.Nodes, err error) {
	defer kind.Catch(&err)
	h, z, nodes = n.graph(nil, x, op.Float32)
	return h, z, nodes, nil
}

// Share makes a program with the nodes that Graph returned read the network's parameters.
func (n *ResNet[T]) Share(p *vm.Program, nodes gorgonia.Nodes) (err error) {
	defer kind.Catch(&err)
	(*deviceParams)(nil).share(p, nodes, n.parameters)
	return nil
}
