package admin

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Setting is a setting of the namespace, which all managers and workers obey (docs/operations.md, "Settings of a
// namespace").
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
}

// Settings returns all settings of the namespace. If Redis holds an invalid value, the setting has its default.
func (a *Admin) Settings(ctx context.Context) ([]Setting, error) {
	settings, _, _, err := a.redis().Room(ctx)
	if err != nil {
		return nil, err
	}
	var all []Setting
	for _, name := range task.SettingNames {
		all = append(all, Setting{name, settings.Value(name), task.DefaultSettings().Value(name)})
	}
	return all, nil
}

// ChangeSetting changes a setting of the namespace. All managers and workers obey the new value within 5 s.
func (a *Admin) ChangeSetting(ctx context.Context, name, value string) error {
	return a.redis().ChangeSetting(ctx, name, value)
}
