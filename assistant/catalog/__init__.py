"""What is known, as data: sourced, dated tables and the records they decode into."""
