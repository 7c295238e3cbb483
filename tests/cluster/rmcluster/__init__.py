"""A real Kubernetes on one machine, in namespaces of its own. The program is ../cluster; docs/testing-cluster.md explains."""
