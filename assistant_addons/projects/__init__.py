"""What a project needs, recipes, the joint decision of hardware and packages, and whether a model fits."""
