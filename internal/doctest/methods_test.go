package doctest

import (
	"reflect"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// A type with more methods than one reads in one go hides that it does several things. A key has a method for its name.
func TestNoTypeHasManyMethods(t *testing.T) {
	const most = 40
	store := reflect.TypeFor[redisstate.Store]()
	expect.Compare(t, reflect.PointerTo(store).NumMethod(), "<=", most)
	for i := range store.NumField() {
		f := store.Field(i)
		if of := f.Type; f.IsExported() && of != reflect.TypeFor[keys.Names]() {
			if of.Kind() != reflect.Pointer {
				of = reflect.PointerTo(of)
			}
			expect.Compare(t, of.NumMethod(), "<=", most, f.Name)
		}
	}
}
