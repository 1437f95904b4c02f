"""Does an environment really compute? Checks that its own Python runs in a child process, each within a time limit."""
