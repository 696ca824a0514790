package model

import (
	"gorgonia.org/gorgonia"

	"cne/model/op"
	"cne/model/vm"
)

// Graph is graph for the CPU.
func (n *ResNet[T]) Graph(x *gorgonia.Node) (h, z *gorgonia.Node, nodes gorgonia.Nodes, err error) {
	return n.graph(nil, x, op.Float32)
}

// Share makes a program with the nodes that Graph returned read the network's parameters.
func (n *ResNet[T]) Share(p *vm.Program, nodes gorgonia.Nodes) error {
	return (*deviceParams)(nil).share(p, nodes, n.parameters)
}
