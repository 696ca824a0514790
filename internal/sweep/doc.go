// Package sweep carries out the runs of a sweep, each in a process of its own, one after
// the other or as many at once as there are processes that work on it, and reports on
// what they gave.
//
// What a sweep is stands in configs.Sweep. Its folder holds
//
//	sweep.json       what decides about the results of the runs (configs.SweepRecord)
//	00, 01, …        the folders of the runs
//	status/00.json   how a run has ended, and status/00.lock, by which one process at a time is at work on it
//	cache            principal components and neighbours, which the runs share (rundir.Cache)
//	report.*         tables, curves, and an explorer of all (report.go)
//
// All but the times and the memory that runs took is the same however many processes
// made it, and however often they were interrupted.
//
// Not here: how a run goes (the program's own commands), and folders of runs (package
// rundir).
package sweep
