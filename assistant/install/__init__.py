"""Turn a plan into an environment: resolve, make, fill, register; on any failure leave nothing half-made."""
