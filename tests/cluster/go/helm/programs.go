//go:build programs

// Package programs names what is built from this module, so that its requirements stay complete.
package programs

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
