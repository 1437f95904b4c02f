"""Use what release 1.1 of lab-tokens brought."""

import lab_tokens

assert lab_tokens.count("a mirror lists a file") == 5
print("the longest word is", lab_tokens.longest("a mirror lists a file"))
