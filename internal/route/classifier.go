package route

import (
	"errors"

	"omniroute/classify"
	"omniroute/internal/config"
)

// Classifier compiles the operator's error rules. The error shows the place in the file.
func Classifier(cfg *config.Config) (*classify.Classifier, error) {
	rules := make([]classify.Rule, len(cfg.ErrorRules))
	for i, r := range cfg.ErrorRules {
		rules[i] = classify.Rule{
			ID: r.ID, Provider: r.Providers, Dialect: r.Dialects, Code: r.Codes, Text: r.Texts, Not: r.Not, Header: r.Header,
			Scope: r.Scope, Kind: r.Kind, Certain: r.Certain, Quarantine: r.Quarantine, Cooldown: r.Cooldown, Constant: r.Constant,
		}
		for _, status := range r.Status {
			parsed, err := classify.ParseStatus(status)
			if err != nil {
				return nil, r.Errorf("status", "%v", err)
			}
			rules[i].Status = append(rules[i].Status, parsed)
		}
	}
	c, err := classify.New(rules...)
	var bad *classify.RuleError
	if errors.As(err, &bad) && bad.Index < len(cfg.ErrorRules) {
		return nil, cfg.ErrorRules[bad.Index].Errorf(bad.Field, "%s", bad.Reason)
	}
	return c, err
}
