"""A course for nbgrader: its folder is written here, and its notebooks are graded by the labs' journals."""
