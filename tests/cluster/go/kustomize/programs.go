//go:build programs

// Package programs names what is built from this module, so that its requirements stay complete.
package programs

import (
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
