"""The program that fails; learners may read it."""

import json

with open("settings.json", encoding="utf-8") as file:
    settings = json.load(file)
print(f"started with size {settings['size']}")
