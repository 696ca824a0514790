// Package openfiles ends the program that imports it with a sentence where the system
// does not let it open the few files that any command needs: Go's runtime has nothing
// but a crash for that.
//
// It does so when it is initialised, because packages that the program is built with
// open files when they are, and so bring the runtime to that point before main. Go
// initialises packages in the order of their import paths as far as their own imports
// allow, and this one imports next to nothing.
package openfiles
