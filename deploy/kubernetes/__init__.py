"""How Gris runs on Kubernetes: manifests, and what checks them."""
