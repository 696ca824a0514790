//go:build amd64 && !noasm

package blas

// available lists the forms that this processor can run.
func available() (forms []string) {
	for i := portable; i <= best; i++ {
		forms = append(forms, i.String())
	}
	return forms
}

// use selects a form and returns a function that selects the former one again.
func use(form string) func() {
	old := current
	for i := portable; i <= best; i++ {
		if i.String() == form {
			current = i
		}
	}
	return func() { current = old }
}
