package safetensors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"cne/internal/simd"
)

// PutValue stores a struct as JSON in the metadata, under a key. Slices of numbers become
// tensors of one dimension instead, because a header is limited and slow to read: their
// names are the key and the names of the fields in JSON, joined by dots. Fields with such
// slices must have names, and options that omit them when they are empty.
func (f *File) PutValue(key string, v any) error {
	rest := f.putNumbers(key, reflect.ValueOf(v))
	text, err := json.Marshal(rest.Interface())
	if err != nil {
		return fmt.Errorf("%s cannot be saved: %w", key, err)
	}
	f.Metadata[key] = string(text)
	return nil
}

// putNumbers returns a copy of v whose slices of numbers are nil, and makes tensors of them.
func (f *File) putNumbers(name string, v reflect.Value) reflect.Value {
	rest := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		rest.Set(reflect.New(v.Type().Elem()))
		rest.Elem().Set(f.putNumbers(name, v.Elem()))
	case v.Kind() == reflect.Struct:
		rest.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rest.Field(i).Set(f.putNumbers(name+"."+fieldName(v.Type().Field(i)), v.Field(i)))
			}
		}
	default:
		switch x := v.Interface().(type) {
		case []float64:
			putNumbers(f, name, x)
		case []float32:
			putNumbers(f, name, x)
		case []int32:
			putNumbers(f, name, x)
		default:
			rest.Set(v)
		}
	}
	return rest
}

func putNumbers[T element](f *File, name string, x []T) {
	if len(x) > 0 && !strings.HasSuffix(name, ".-") {
		f.Tensors[name] = New(x, len(x))
	}
}

// fieldName returns the name of a field in JSON; "-" if it has none.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Value reads what PutValue has stored into the struct to which v points, and takes its
// tensors out of the file. Unknown fields are errors.
func (f *File) Value(key string, v any) error {
	d := json.NewDecoder(strings.NewReader(f.Metadata[key]))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return f.numbers(key, reflect.ValueOf(v).Elem())
}

// numbers fills the slices of numbers of v for which there are tensors.
func (f *File) numbers(name string, v reflect.Value) (err error) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return f.numbers(name, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			if v.Type().Field(i).IsExported() {
				err = f.numbers(name+"."+fieldName(v.Type().Field(i)), v.Field(i))
			}
		}
		return err
	case v.Kind() != reflect.Slice:
		return nil
	}
	t, ok := f.Tensors[name]
	if !ok {
		return nil
	}
	delete(f.Tensors, name)
	switch x := v.Addr().Interface().(type) {
	case *[]float64:
		*x, err = t.Float64s()
		err = cmp.Or(err, checkFinite(*x))
	case *[]float32:
		*x, err = t.Float32s()
		err = cmp.Or(err, checkFinite(*x))
	case *[]int32:
		*x, err = t.Int32s()
	default:
		err = fmt.Errorf("%w: got %s, want text", ErrDType, t.DType)
	}
	if err != nil {
		err = fmt.Errorf("tensor %s: %w", quote(name), err)
	}
	return err
}

// checkFinite refuses numbers that JSON cannot hold.
func checkFinite[T float32 | float64](x []T) error {
	if i := simd.FirstNotFinite(x); i >= 0 {
		return fmt.Errorf("value %d: got %v, want a finite number", i, x[i])
	}
	return nil
}
