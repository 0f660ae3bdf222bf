package lab_test

import (
	"context"
	"testing"

	"omniroute/internal/config"
	"omniroute/internal/lab"
)

// TestDemoConfig shows that the gateway takes the demo's configuration as it is.
func TestDemoConfig(t *testing.T) {
	t.Parallel()
	demo := lab.NewDemo(lab.DemoOptions{})
	if err := demo.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { demo.Stop(context.Background()) })
	c, warnings, err := config.Parse("demo.yaml", []byte(demo.Config()), func(string) (string, bool) { return "", false })
	if err != nil || len(warnings) != 0 {
		t.Fatalf("%v %v in\n%s", err, warnings, demo.Config())
	}
	for _, model := range []string{"demo", "northwind/aurora", "comet", "fault/429", "fault/cut:5", "northwind/fault/429"} {
		if _, err := c.Resolve(model); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
}
